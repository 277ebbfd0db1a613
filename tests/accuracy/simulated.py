"""Small stages for the simulator's tests: a device and a host on which a test plays by hand, and small programs."""

from __future__ import annotations

from collections.abc import Callable

from device.engine import Engine, Steps
from device.hardware import DEVICES
from device.host import Host
from device.models import Shape
from device.noise import Noise
from device.ops import Kernel
from device.program import Program

A100 = DEVICES["a100"]
SMALL = Shape("mlp", {"layers": 3, "width": 256, "features": 64})
MIDDLE = Shape("transformer", {"layers": 2, "width": 256, "seq": 128, "vocabulary": 2048})


def kernel(ns: float, fill: float = 1.0, name: str = "kernel") -> Kernel:
    return Kernel("pointwise", name, ns, fill=fill)


def hosts(ranks: int = 1) -> list[Host]:
    """Without noise, so that every figure of a test is exact."""
    engine, meetings = Engine(), {}
    return [Host(engine, A100, Noise(0, on=False), rank, meetings, ranks, True) for rank in range(ranks)]


def played(*parts: Callable[[Host], Steps]) -> list[Host]:
    """Each part is what the host of one rank does; all of them run to their ends."""
    made = hosts(len(parts))
    for host, part in zip(made, parts):
        host.engine.start(part(host))
    made[0].engine.run()
    return made


def program(**more) -> Program:
    settings = {"key": "test", "device_key": "a100", "shape": MIDDLE, "batch": 8, "precision": "bf16", **more}
    return Program(**{"steps": 4, "workers": 2, "fetch_ms": 0.5, **settings})


def overlaps(begin: int, end: int, other_begin: int, other_end: int) -> bool:
    return begin < other_end and other_begin < end
