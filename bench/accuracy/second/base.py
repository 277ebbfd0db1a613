"""Draws sound programs: a model on a device, with a batch size that makes host or device the slower one."""

import math
import random
from dataclasses import replace

from second.devices import SPECS, Hardware
from second.families import DRAW, build
from second.layers import Numerics
from second.ops import Model, host_ns, kernels_of
from second.optimizers import STEPS
from second.program import Exchange, Feed, Loader, Program

BATCHES = {"dlrm": (256, 16384), "mlp": (32, 8192), "rnn": (8, 512)}  # smallest and largest; others 1 to 512
LAUNCHES = 2400  # of a step, all ranks together: more would take too long, and make files too large
LONGEST_NS = 0.8e9  # of a step


class Unfit(Exception):
    """This draw gives no program that makes sense: draw again."""


def device_ns(hardware: Hardware, ops) -> float:
    """Time of the device alone."""
    return sum(hardware.usage(kernel).time + hardware.gap for op in ops for kernel in kernels_of(op))


class Sizes:
    """Estimates of one step, to size what stands around the model."""

    def __init__(self, program: Program, hardware: Hardware, model: Model):
        optimizer = STEPS[program.step_style](program.optimizer, model.params)
        ops = [*model.operators(), *optimizer]
        self.host = sum(map(host_ns, ops)) * program.cpu
        self.host += 7300.0 * len(model.params) * program.cpu  # AccumulateGrad, zero_grad, the optimizer's groups
        self.device = device_ns(hardware, ops)
        self.step = max(self.host, self.device)
        self.launches = model.kernels + sum(len(kernels_of(op)) for op in optimizer)
        self.launches += len(model.params) * (2 * (program.ranks > 1) + (not program.set_to_none))
        self.weights = model.weights


def memory_fits(hardware: Hardware, model: Model) -> bool:
    """Activations (half of what the forward pass writes is kept), weights, gradients and states."""
    written = sum(kernel.writes for op in model.forward for kernel in kernels_of(op))
    return 0.5 * written + 16.0 * model.weights < 0.8 * hardware.spec.gib * 2**30


def fit_batch(program: Program, hardware: Hardware, ratio: float) -> Program:
    """The batch size with which device time by host time comes nearest to a ratio."""
    least, most = BATCHES.get(program.family, (1, 512))
    best, at = None, least
    while at <= most:
        model = build(program.family, program.shape, at, hardware, program.numerics)
        if not memory_fits(hardware, model):
            break
        device = device_ns(hardware, model.operators())
        if device > LONGEST_NS:
            break
        miss = abs(math.log(device / (sum(map(host_ns, model.operators())) * program.cpu) / ratio))
        if best is None or miss < best[0]:
            best = (miss, at)
        at *= 2
    if best is None or best[0] > 0.7:
        raise Unfit("no batch size gives this ratio")
    return replace(program, batch=best[1])


def draw_numerics(draw: random.Random, device: str) -> Numerics:
    """fp32 mostly; autocast sometimes."""
    turned = draw.random() < 0.5
    if draw.random() < 0.35:
        half = "c10::Half" if device == "V100" or draw.random() < 0.3 else "c10::BFloat16"
        return Numerics(half, channels_last=turned)
    return Numerics("", draw.random() < 0.3, draw.random() < 0.85, turned)


def draw_exchange(draw: random.Random, device: str) -> Exchange:
    """DDP as it comes, on this device's links."""
    fast = SPECS[device].link > 50
    return Exchange(
        link=SPECS[device].link * draw.uniform(0.6, 0.95),
        latency=draw.uniform(10e3, 30e3),
        sms=draw.randint(8, 24) if fast else draw.randint(2, 6),
        contention=draw.uniform(1.0, 1.12),
        buffers=draw.random() < 0.6,
    )


def draw_program(draw: random.Random, families: tuple, devices: tuple, ranks: int) -> tuple:
    """(program, hardware) before its batch size and its surroundings are set."""
    family, device = draw.choice(families), draw.choice(devices)
    hardware = Hardware(device, f"machine {draw.random()}")
    numerics = draw_numerics(draw, device)
    program = Program(
        family=family,
        shape=DRAW[family](draw),
        batch=1,
        device=device,
        ranks=ranks,
        cpu=math.exp(
            draw.uniform(math.log(0.7), math.log(1.9))
        ),  # drawn: from a fast desktop core to a busy old server
        numerics=numerics,
        scaler=numerics.autocast == "c10::Half",
        optimizer=draw.choice(("SGD", "Adam", "AdamW")),
        step_style=draw.choices(("foreach", "loop", "fused"), (0.6, 0.2, 0.2))[0],
        clip=draw.random() < 0.2,
        set_to_none=draw.random() < 0.85,
        compiled=draw.random() < 0.08,
        exchange=draw_exchange(draw, device),
        loop_ns=math.exp(draw.uniform(math.log(2e4), math.log(2.5e5))),  # drawn: bare loop to progress bar and logging
        stall_chance=draw.uniform(0.0, 0.015),
    )
    return program, hardware


def surround(draw: random.Random, program: Program, hardware: Hardware, pinned: float = 0.75) -> tuple:
    """Loader and feed that do not hold the step up; returns (program, sizes)."""
    model = build(program.family, program.shape, program.batch, hardware, program.numerics)
    sizes = Sizes(program, hardware, model)
    if sizes.launches * program.ranks > LAUNCHES:
        raise Unfit("too many launches")
    workers = draw.choice((4, 6, 8, 12))
    loader = Loader(
        workers=workers,
        batch_ns=sizes.step * workers * draw.uniform(0.1, 0.45),
        sigma=draw.uniform(0.05, 0.2),
        get_ns=draw.uniform(60e3, min(300e3, 60e3 + 0.1 * sizes.step)),
    )
    element = 4 if model.image or program.family == "mlp" else 8
    size = math.prod(model.input_shape) * element
    is_pinned = draw.random() < pinned
    feed = Feed(batch_bytes=size, pinned=is_pinned, blocking=not is_pinned or draw.random() < 0.3)
    reads = ("loss",) if draw.random() < 0.3 else ()
    stall = min(20e6, sizes.step * draw.uniform(0.05, 0.4))
    return replace(program, loader=loader, feed=feed, reads=reads, stall_ns=stall), sizes


def sound_program(draw, families: tuple, devices: tuple, ranks: int, ratio: tuple, settle=None, pinned=0.75) -> tuple:
    """(program, hardware, sizes); settle changes what was drawn before anything is sized by it."""
    program, hardware = draw_program(draw, families, devices, ranks)
    program = settle(program) if settle else program
    program = fit_batch(program, hardware, math.exp(draw.uniform(math.log(ratio[0]), math.log(ratio[1]))))
    program, sizes = surround(draw, program, hardware, pinned)
    return program, hardware, sizes
