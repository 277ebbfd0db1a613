"""Draws training programs in which nothing is wrong, for devices and in sizes as people use them."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

from .models import FAMILIES, draw_shape
from .program import Program
from .training import layout_of

DEVICE_KEYS = ("v100", "a100", "a100", "h100", "h100", "mi300x")
SIZES = ("small", "medium", "medium", "large")
MOST_DEVICE_NS, MOST_BATCH = 250e6, 32_768
LEAST_BATCH = {"convnet": 4, "transformer": 1, "recommender": 128, "mlp": 32, "diffusion": 2}
MOST_LAUNCHES = 6_000  # in a recording of one rank, so that a pair takes well under a second


@dataclass(frozen=True)
class Base:
    """What is asked of a draw. `margin` is the device's time over the host's: above 1 the device sets the pace."""

    margin: tuple[float, float]
    families: tuple[str, ...] = FAMILIES
    devices: tuple[str, ...] = DEVICE_KEYS
    size: tuple[str, ...] = SIZES
    precision: str = ""
    compiled: float = 0.25  # how often
    ranks: tuple[int, ...] = (1, 1, 1, 2, 4)
    by_hand: bool = False


def kernels_ns_of(program: Program) -> float:
    gap_ns = program.device.gap_ns
    return sum(kernel.ns + gap_ns for kernel in layout_of(program).kernels)


def host_ns_of(program: Program) -> float:
    layout, device = layout_of(program), program.device
    ops = layout.forward + layout.backward + layout.optimizer
    launches = len(layout.kernels) * device.call_ns
    return sum(op.host_ns for op in ops) * device.host_factor * program.host_scale + launches + 250_000


def draw_base(rng: random.Random, key: str, wanted: Base) -> Program:
    device = rng.choice(wanted.devices)
    shape = replace(draw_shape(rng.choice(wanted.families), rng, rng.choice(wanted.size)), by_hand=wanted.by_hand)
    program = Program(
        key=key,
        device_key=device,
        shape=shape,
        batch=4,
        precision=wanted.precision or _precision(device, rng),
        optimizer=rng.choice(("SGD", "Adam", "AdamW", "AdamW")),
        optimizer_impl=rng.choice(("fused", "foreach")),
        compiled=rng.random() < wanted.compiled,
        host_scale=rng.uniform(0.75, 1.4),
        ranks=rng.choice(wanted.ranks),
        pin_rate=rng.uniform(8e9, 14e9),
        cold=rng.random() < 0.7,
        with_stack=rng.random() < 0.3,
        sync_events=rng.random() < 0.3,
        shapes=rng.random() < 0.85,
        whole_microseconds=device == "v100" and rng.random() < 0.3,
    )
    if program.compiled and program.ranks == 1 and rng.random() < 0.25:
        program = replace(program, graphs=True)
    if program.scaler:
        program = replace(program, optimizer_impl="fused")  # else the scaler waits for the device in each step
    program = _fed(_filled(program, rng.uniform(*wanted.margin)), rng)
    launches = len(layout_of(program).kernels)
    steps = max(3, min(rng.choice((4, 6, 8, 10)), MOST_LAUNCHES // launches))
    return replace(program, steps=steps, warmup=max(3, min(8, 2 + 1_500 // launches)))


def _precision(device: str, rng: random.Random) -> str:
    if device == "v100":
        return "amp-fp16"
    return rng.choice(("amp-bf16", "amp-bf16", "bf16"))


def _filled(program: Program, margin: float) -> Program:
    """The batch with which the device takes that many times as long as the host."""
    batch = LEAST_BATCH[program.shape.family]
    best = replace(program, batch=batch)
    while batch <= MOST_BATCH:
        candidate = replace(program, batch=batch)
        device_ns = kernels_ns_of(candidate)
        if device_ns > MOST_DEVICE_NS:
            break
        best = candidate
        if device_ns >= margin * host_ns_of(candidate):
            break
        batch *= 2
    return best


def _fed(program: Program, rng: random.Random) -> Program:
    """Workers that keep up, and copies that do not show."""
    step_ms = max(kernels_ns_of(program), host_ns_of(program)) / 1e6
    workers = rng.choice((2, 4, 8))
    fetch_ms = workers * step_ms * rng.uniform(0.1, 0.5)
    pin_rate = max(program.pin_rate, 2e3 * program.batch_bytes / step_ms)
    copy_ms = 1e3 * program.batch_bytes / program.device.link_bytes_per_s
    side = copy_ms > 0.015 * step_ms or rng.random() < 0.15
    scale = min(1.0, 0.5 * step_ms / copy_ms)
    return replace(program, workers=workers, fetch_ms=fetch_ms, side_stream=side, input_scale=scale, pin_rate=pin_rate)
