"""Scenarios: for each cure a program that is slow in one way, and the same program cured."""

import math
import random
from dataclasses import dataclass, replace

from second.base import LAUNCHES, Sizes, Unfit, sound_program
from second.devices import Hardware
from second.families import build
from second.layers import Numerics
from second.loader import PIN_RATE
from second.program import Feed, Lag, Periodic, Program

ALL = ("cnn", "transformer", "vit", "dlrm", "mlp", "unet", "rnn")
IMAGES = ("cnn", "vit", "unet")
MATRIX = ("cnn", "transformer", "vit", "unet", "mlp")
DEVICES = ("V100", "A100", "H100", "L4", "A10", "MI300X")


@dataclass(frozen=True)
class Case:
    """A pair of programs on one machine."""

    cure: str
    before: Program
    after: Program  # the same as before where nothing is to be cured
    hardware: Hardware
    about: str


def ranks_of(draw: random.Random) -> int:
    """One rank mostly."""
    return draw.choices((1, 2, 4), (0.75, 0.2, 0.05))[0]


def many(draw: random.Random) -> int:
    """Two or four ranks."""
    return draw.choice((2, 2, 4))


def workers(draw: random.Random) -> Case:
    """The loader cannot keep up."""
    program, hardware, sizes = sound_program(draw, ALL, DEVICES, ranks_of(draw), (0.5, 6))
    count = draw.choice((0, 0, 1, 2))
    batch_ns = sizes.step * draw.uniform(0.3, 2.5) * max(count, 1) + (0.3 * sizes.step if count else 0.0)
    program = replace(program, loader=replace(program.loader, workers=count, batch_ns=batch_ns))
    number = draw.choice((None, 2, 4, 8))
    if number is not None and number <= count:
        raise Unfit("no more workers than before")
    enough = min(64, math.ceil(2 * batch_ns / sizes.step) + 2)
    contention = 1.0 if number is None else draw.uniform(1.0, 1.15)  # drawn: workers share caches and cores
    cpu = program.cpu * draw.uniform(1.0, 1.03)  # drawn: and so does the main process
    loader = replace(program.loader, workers=number or enough, contention=contention)
    after = replace(program, loader=loader, cpu=cpu)
    about = f"a loader with {count} workers takes {batch_ns / 1e6:.1f} ms for a batch"
    return Case("workers" if number is None else f"workers={number}", program, after, hardware, about)


def heavy_feed(draw: random.Random, families: tuple, pinned: bool, blocking: bool) -> tuple:
    """A program whose batches are large for its computation."""
    program, hardware, sizes = sound_program(draw, families, DEVICES, ranks_of(draw), (0.6, 4))
    size = program.feed.batch_bytes * (draw.choice((1, 2, 4)) if program.family != "cnn" else draw.choice((1, 2)))
    rate = hardware.pinned if pinned else hardware.pageable
    if size / rate < 0.04 * sizes.step:
        raise Unfit("batches too small to matter")
    if size / PIN_RATE > 0.7 * sizes.step:
        raise Unfit("one thread cannot pin batches so fast")
    feed = Feed(batch_bytes=size, pinned=pinned, blocking=blocking)
    return replace(program, feed=feed), hardware, sizes


def pin(draw: random.Random) -> Case:
    """Pageable copies."""
    program, hardware, _ = heavy_feed(draw, ("cnn", "unet", "vit", "mlp"), False, True)
    after = replace(program, feed=replace(program.feed, pinned=True, blocking=False))
    about = f"batches of {program.feed.batch_bytes / 1e6:.0f} MB are copied from pageable memory"
    return Case("pin", program, after, hardware, about)


def side_stream(draw: random.Random) -> Case:
    """Pinned copies in line with the kernels."""
    program, hardware, _ = heavy_feed(draw, ("cnn", "unet", "vit", "mlp"), True, False)
    after = replace(program, feed=replace(program.feed, ahead=True))
    about = f"batches of {program.feed.batch_bytes / 1e6:.0f} MB are copied on the stream of the kernels"
    return Case("side-stream", program, after, hardware, about)


def as_bytes(draw: random.Random) -> Case:
    """Pictures come as floats."""
    pinned = draw.random() < 0.5
    program, hardware, _ = heavy_feed(draw, IMAGES, pinned, not pinned)
    loader = replace(program.loader, batch_ns=program.loader.batch_ns * draw.uniform(0.75, 0.95))  # drawn: no ToTensor
    after = replace(program, feed=replace(program.feed, as_bytes=True), loader=loader)
    about = f"pictures come as {program.feed.batch_bytes / 1e6:.0f} MB of floats"
    return Case("bytes", program, after, hardware, about)


def no_sync(draw: random.Random) -> Case:
    """The host reads values back within the step."""
    program, hardware, _ = sound_program(draw, ALL, DEVICES, ranks_of(draw), (0.7, 2.0))
    if program.scaler:
        raise Unfit("the scaler reads back too")
    places = [round(draw.uniform(0.05, 0.98), 3) for _ in range(draw.choice((0, 1, 2, 5)))]
    reads = tuple(places) + tuple(draw.sample(("loss", "norm"), draw.randint(1, 2)))
    program = replace(program, reads=reads, feed=replace(program.feed, pinned=True, blocking=False))
    about = f"the host reads {len(reads)} values back in each step"
    return Case("no-sync", program, replace(program, reads=()), hardware, about)


def fused_optimizer(draw: random.Random) -> Case:
    """The optimizer goes through the weights one by one, or operation by operation."""
    program, hardware, _ = sound_program(draw, ALL, DEVICES, ranks_of(draw), (0.4, 3))
    style = draw.choice(("loop", "loop", "foreach"))
    program = replace(program, step_style=style)
    check_launches(program, hardware)
    words = "weight by weight" if style == "loop" else "operation by operation"
    about = f"{program.optimizer} updates the weights {words}"
    return Case("fused-optimizer", program, replace(program, step_style="fused"), hardware, about)


def graphs(draw: random.Random) -> Case:
    """Launches take longer than kernels."""
    program, hardware, _ = sound_program(draw, ALL, DEVICES, 1, (0.15, 0.75))
    if program.scaler:
        raise Unfit("the scaler reads back")
    program = replace(program, compiled=False)
    about = "the host cannot launch small kernels fast enough"
    return Case("graphs", program, replace(program, graphs=True), hardware, about)


def compile_(draw: random.Random) -> Case:
    """Many elementwise kernels."""
    program, hardware, _ = sound_program(draw, ALL, DEVICES, ranks_of(draw), (0.4, 4))
    program = replace(program, compiled=False)
    about = "chains of elementwise kernels read and write what one kernel could keep"
    return Case("compile", program, replace(program, compiled=True), hardware, about)


def precision(draw: random.Random) -> Case:
    """Products in 32 bit."""
    program, hardware, _ = sound_program(draw, MATRIX, DEVICES, ranks_of(draw), (1.5, 15), plain)
    half = half_type(program.device, draw.random() < 0.3)
    numerics = replace(program.numerics, autocast=half)
    after = replace(program, numerics=numerics, scaler=half == "c10::Half")
    return Case("precision", program, after, hardware, "products and convolutions run in 32 bit")


def plain(program: Program) -> Program:
    """Without autocast."""
    return replace(program, numerics=replace(program.numerics, autocast=""), scaler=False)


def half_type(device: str, old: bool) -> str:
    """The 16-bit type: V100 has no bfloat16."""
    return "c10::Half" if old or device == "V100" else "c10::BFloat16"


def overlap(draw: random.Random) -> Case:
    """Gradients are exchanged after the backward pass."""
    program, hardware, sizes = sound_program(draw, ALL, DEVICES, many(draw), (0.8, 8))
    link = slow_link(draw, program, sizes, 0.15, 0.9)
    style = draw.choice(("after", "flat"))
    program = replace(program, exchange=replace(program.exchange, style=style, link=link))
    after = replace(program, exchange=replace(program.exchange, style="ddp"))
    about = "gradients are exchanged when the backward pass is over"
    return Case("overlap", program, after, hardware, about)


def slow_link(draw: random.Random, program: Program, sizes: Sizes, least: float, most: float) -> float:
    """A link with which the exchange takes a drawn share of the step."""
    moved = 2.0 * (program.ranks - 1) / program.ranks * 4.0 * sizes.weights
    return min(program.exchange.link, max(0.5, moved / (sizes.step * draw.uniform(least, most))))


def comm(draw: random.Random) -> Case:
    """The links are slow."""
    program, hardware, sizes = sound_program(draw, ALL, DEVICES, many(draw), (0.8, 8))
    program = replace(program, exchange=replace(program.exchange, link=slow_link(draw, program, sizes, 0.6, 3.0)))
    after = replace(program, exchange=replace(program.exchange, half=True))
    about = f"gradients of {sizes.weights * 4 / 1e6:.0f} MB go over links of {program.exchange.link:.1f} GB/s"
    return Case("comm", program, after, hardware, about)


def accumulate(draw: random.Random) -> Case:
    """Exchange and optimizer take much of each step."""
    program, hardware, sizes = sound_program(draw, ALL, DEVICES, draw.choice((1, 2, 4)), (0.5, 4))
    program = replace(program, exchange=replace(program.exchange, link=slow_link(draw, program, sizes, 0.4, 2.0)))
    number = draw.choice((2, 4, 8))
    about = "gradients are exchanged and applied after each batch"
    return Case(f"accumulate={number}", program, replace(program, accumulate=number), hardware, about)


def bucket(draw: random.Random) -> Case:
    """DDP's buckets are small."""
    program, hardware, sizes = sound_program(draw, ALL, DEVICES, many(draw), (0.5, 3))
    exchange = replace(
        program.exchange,
        bucket=round(math.exp(draw.uniform(math.log(0.01), math.log(0.6))), 3),
        latency=draw.uniform(30e3, 120e3),
        link=slow_link(draw, program, sizes, 0.1, 0.6),
    )
    program = replace(program, exchange=exchange)
    after = replace(program, exchange=replace(exchange, bucket=25.0))
    return Case("bucket=25", program, after, hardware, f"gradients go out in buckets of {exchange.bucket} MB")


def straggler(draw: random.Random) -> Case:
    """One rank is late, or a different one in each step."""
    ranks = many(draw)
    program, hardware, sizes = sound_program(draw, ALL, DEVICES, ranks, (0.5, 5))
    kind = draw.choice(("host", "device", "loader", "work"))
    factor = draw.uniform(1.15, 2.0)
    loader = program.loader
    if kind == "work":
        factor = draw.uniform(0.1, 0.35)
    if kind == "loader":
        loader = replace(loader, batch_ns=sizes.step * loader.workers * draw.uniform(0.7, 0.9))
    lag = Lag(kind, draw.randrange(ranks), factor)
    before = replace(program, lag=lag, loader=loader)
    about = (
        "the work of the ranks differs from step to step"
        if kind == "work"
        else f"the {kind} of rank {lag.rank} is slow"
    )
    return Case("straggler", all_lag(before), replace(before, lag=Lag()), hardware, about)


def all_lag(program: Program) -> Program:
    """Uneven work concerns all ranks."""
    return replace(program, lag=replace(program.lag, rank=-1)) if program.lag.kind == "work" else program


def checkpoint(draw: random.Random) -> Case:
    """Checkpoints are written in the loop."""
    program, hardware, sizes = sound_program(draw, ALL, DEVICES, draw.choice((1, 1, 1, 2)), (0.5, 8))
    periodic = Periodic(every=draw.randint(2, 6), disk=draw.uniform(0.4, 2.5))
    program = replace(program, checkpoint=periodic)
    about = f"a checkpoint of {sizes.weights * 4 / 1e6:.0f} MB and the optimizer's states every {periodic.every} steps"
    return Case("checkpoint", program, replace(program, checkpoint=replace(periodic, beside=True)), hardware, about)


def validation(draw: random.Random) -> Case:
    """Validation runs in the loop."""
    program, hardware, _ = sound_program(draw, ALL, DEVICES, draw.choice((1, 1, 1, 2)), (0.5, 8))
    periodic = Periodic(every=draw.randint(2, 6), batches=draw.randint(1, 6))
    program = replace(program, validation=periodic)
    about = f"{periodic.batches} batches are validated every {periodic.every} steps"
    return Case("validation", program, replace(program, validation=replace(periodic, beside=True)), hardware, about)


def garbage_collection(draw: random.Random) -> Case:
    """Python's collector stops the loop."""
    program, hardware, sizes = sound_program(draw, ALL, DEVICES, ranks_of(draw), (0.4, 2))
    every = draw.randint(1, 6)
    pause = min(400e6, max(5e6, sizes.step * every * draw.uniform(0.1, 0.8)))  # drawn: 5 to 400 ms of a large heap
    periodic = Periodic(every=every, pause=pause, explicit=draw.random() < 0.5)
    program = replace(program, collection=periodic)
    words = "the loop calls gc.collect()" if periodic.explicit else "Python collects garbage"
    about = f"{words} every {every} steps, {pause / 1e6:.0f} ms"
    return Case("garbage-collection", program, replace(program, collection=Periodic()), hardware, about)


def healthy(draw: random.Random) -> Case:
    """The device is busy, and nothing of the list would help much."""
    program, hardware, _ = sound_program(draw, ALL, DEVICES, ranks_of(draw), (2, 15), tuned, 1.0)
    program = replace(program, feed=replace(program.feed, blocking=False), reads=())
    return Case("", program, program, hardware, "nothing: the device is busy with what it has to do")


def tuned(program: Program) -> Program:
    """16 bit, a fused optimizer, nothing read back."""
    numerics = Numerics(half_type(program.device, False), channels_last=True)
    return replace(program, numerics=numerics, step_style="fused", scaler=False, clip=False, set_to_none=True)


def check_launches(program: Program, hardware: Hardware):
    """After a change of the optimizer: still few enough launches for a file."""
    model = build(program.family, program.shape, program.batch, hardware, program.numerics)
    if Sizes(program, hardware, model).launches * program.ranks > LAUNCHES:
        raise Unfit("too many launches")


SCENARIOS = (
    workers, pin, side_stream, no_sync, fused_optimizer, graphs, compile_, precision, as_bytes, overlap, comm,
    accumulate, bucket, straggler, checkpoint, validation, garbage_collection, healthy,
)  # fmt: skip
