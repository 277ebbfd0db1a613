"""Two programs take turns of a second each, and count what they do: their speeds are those of one and the same time,
whatever else the machine does. Each program writes a line for each of its steps (reports/clock.py)."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

WARM_S = 3.0  # of steps, of each program, before the turns begin
TO_START_S = 240.0
TURN_S = 1.0


class Failed(Exception):
    """A program that ended, or took no step."""


@dataclass
class Runner:
    """One of the two: all its processes run or stand together."""

    process: subprocess.Popen
    steps: Path
    output: Path
    turns: list[tuple[float, float]] = field(default_factory=list)

    def tell(self, number: signal.Signals) -> None:
        for pid in descendants(self.process.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def counted(self) -> list[tuple[float, float]]:
        """When each step ended, and what it counted. The last line may be half written."""
        lines = self.steps.read_text().splitlines()[:-1] if self.steps.exists() else []
        return [(float(at), float(count)) for at, count in map(str.split, lines)]

    def warm_up(self) -> None:
        until = time.monotonic() + TO_START_S
        while True:
            steps = self.counted()
            if steps and steps[-1][0] - steps[0][0] >= WARM_S:
                return
            if self.process.poll() is not None or time.monotonic() > until:
                raise Failed(f"no {WARM_S:.0f} s of steps: {self.output.read_text()[-2000:]}")
            time.sleep(0.1)

    def take_turn(self) -> None:
        self.tell(signal.SIGCONT)
        begin = time.monotonic()
        time.sleep(TURN_S)
        if self.process.poll() is not None:
            raise Failed(self.output.read_text()[-2000:])
        self.turns.append((begin, time.monotonic()))
        self.tell(signal.SIGSTOP)

    def rate(self) -> float:
        """What a step has begun in one turn it ends in the next: nothing is lost between them."""
        since, until = self.turns[0][0], self.turns[-1][1]
        counted = sum(count for at, count in self.counted() if since < at <= until)
        if not counted:
            raise Failed(f"no step in {len(self.turns)} turns")
        return counted / sum(end - begin for begin, end in self.turns)


def descendants(pid: int) -> Iterator[int]:
    """The process, and all that it has started, sessions of their own included."""
    yield pid
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            for child in children.read_text().split():
                yield from descendants(int(child))


@contextlib.contextmanager
def started(command: list[str], environment: dict[str, str], folder: Path, name: str) -> Iterator[Runner]:
    steps, output = folder / f"{name}.steps", folder / f"{name}.output"
    steps.unlink(missing_ok=True)
    with open(output, "w") as to:
        said = {"stdout": to, "stderr": subprocess.STDOUT, "stdin": subprocess.DEVNULL}
        process = subprocess.Popen(command, cwd=folder, env={**environment, "CLOCK_STEPS": str(steps)}, **said)
    runner = Runner(process, steps, output)
    try:
        yield runner
    finally:
        for pid in list(descendants(process.pid)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.wait()


def rates_in_turns(
    before: list[str], after: list[str], environment: dict[str, str], folder: Path, seconds: float
) -> tuple[float, float]:
    """What each counts in a second, over `seconds` of each."""
    with (
        started(before, environment, folder, "before") as first,
        started_after(first, after, environment, folder) as second,
    ):
        for _ in range(max(1, round(seconds / TURN_S))):
            first.take_turn()
            second.take_turn()
        return first.rate(), second.rate()


@contextlib.contextmanager
def started_after(first: Runner, command: list[str], environment: dict[str, str], folder: Path) -> Iterator[Runner]:
    """The second, while the first stands; both are warm then."""
    first.warm_up()
    first.tell(signal.SIGSTOP)
    with started(command, environment, folder, "after") as second:
        second.warm_up()
        second.tell(signal.SIGSTOP)
        yield second
