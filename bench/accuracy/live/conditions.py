"""The machine's condition during a case: fewer cores, a CPU quota, other programs."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

PERIOD_US = 100_000
CGROUPS = Path("/sys/fs/cgroup")
BURN = "while True: pass"


class Unavailable(Exception):
    """This machine cannot provide the condition; the text says why."""


@dataclass(frozen=True)
class Condition:
    name: str
    cpus: int | None = None  # affinity
    quota: float | None = None  # cores' worth of CPU time
    foreign: int = 0  # programs that take a core each
    alone: bool = False  # only the recording has them beside it: does the advice hold once they are gone?

    @property
    def measured_under(self) -> Condition:
        """What the changes are measured under."""
        return CONDITIONS["as-is"] if self.alone else self

    @property
    def cores(self) -> int:
        available = len(os.sched_getaffinity(0))
        wanted = min(available, self.cpus or available)
        return max(1, min(wanted, int(self.quota or wanted)))


CONDITIONS = {
    each.name: each
    for each in (
        Condition("as-is"),
        Condition("one-core", cpus=1),
        Condition("two-cores", cpus=2),
        Condition("quota-1.5", quota=1.5),
        Condition("foreign-load", foreign=1),
        Condition("load-2-then-alone", foreign=2, alone=True),
        Condition("load-6-then-alone", foreign=6, alone=True),
    )
}


@contextlib.contextmanager
def under(condition: Condition, foreign: int = 0) -> Iterator[Callable[[], None]]:
    """What each program must call in its own process before it starts (a preexec_fn)."""
    available = sorted(os.sched_getaffinity(0))
    if condition.cpus and condition.cpus > len(available):
        raise Unavailable(f"{condition.name}: needs {condition.cpus} cores, {len(available)} may be used here")
    cpus = available[: condition.cpus]
    with contextlib.ExitStack() as stack:
        group = stack.enter_context(quota_group(condition.quota)) if condition.quota else None

        def enter() -> None:
            os.sched_setaffinity(0, cpus)
            if group:
                (group / "cgroup.procs").write_text(str(os.getpid()))

        stack.enter_context(burners(condition.foreign + foreign, cpus))
        yield enter


@contextlib.contextmanager
def burners(count: int, cpus: list[int]) -> Iterator[None]:
    started = [
        subprocess.Popen([sys.executable, "-c", BURN], preexec_fn=lambda: os.sched_setaffinity(0, cpus))
        for _ in range(count)
    ]
    try:
        yield
    finally:
        for process in started:
            process.kill()
            process.wait()


@contextlib.contextmanager
def quota_group(cores: float) -> Iterator[Path]:
    """A CPU cgroup of its own: v2 where the unified hierarchy has the cpu controller, else v1."""
    unified = CGROUPS / "cgroup.controllers"
    v2 = unified.exists() and "cpu" in unified.read_text().split()
    group = (CGROUPS if v2 else CGROUPS / "cpu") / f"fullbore-exam-{os.getpid()}"
    try:
        group.mkdir()
        if v2:
            (group / "cpu.max").write_text(f"{int(cores * PERIOD_US)} {PERIOD_US}")
        else:
            (group / "cpu.cfs_period_us").write_text(str(PERIOD_US))
            (group / "cpu.cfs_quota_us").write_text(str(int(cores * PERIOD_US)))
    except OSError as error:
        with contextlib.suppress(OSError):
            group.rmdir()
        raise Unavailable(f"a quota of {cores} cores needs a writable CPU cgroup (root): {error}") from error
    try:
        yield group
    finally:
        with contextlib.suppress(OSError):  # a process that has just ended may still be in it
            group.rmdir()
