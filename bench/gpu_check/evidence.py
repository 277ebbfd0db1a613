"""What the checks stand on: rows, and commands that cannot outlive their time."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Row:
    """One line of the table. Held: as it should be; None: nothing to compare with, or it could not be measured."""

    what: str
    seen: str
    wanted: str = ""
    held: bool | None = None


class Failed(Exception):
    """A command ended with an error, or had to be ended."""


class Missing(Failed):
    """A library that the command needs is not there."""


class Place:
    """Where the check runs: the program under test, the Python that trains, and a directory for what is made."""

    def __init__(
        self, fullbore: Path, python: str, directory: Path, has_device: bool, seconds: float, until: float
    ) -> None:
        self.fullbore, self.python, self.directory = fullbore, python, directory
        self.has_device, self.seconds, self.until = has_device, seconds, until
        self.groups: list[str] = []  # of cures

    def time_is_up(self, needed_s: float = 0) -> bool:
        return time.monotonic() + needed_s >= self.until

    def file(self, name: str) -> Path:
        return self.directory / name

    def log(self, name: str) -> Path:
        return self.directory / f"{name}.log"

    def call(self, name: str, *words: object, limit_s: float, **environment: str) -> str:
        """Standard output. What the command says on standard error is kept in a file of that name."""
        with open(self.log(name), "w") as errors:
            with started([str(word) for word in words], self.directory, errors, **environment) as process:
                try:
                    said, _ = process.communicate(timeout=limit_s)
                except subprocess.TimeoutExpired:
                    raise Failed(f"{name}: ended after {limit_s:.0f} s") from None
        self.file(f"{name}.out").write_text(said)
        if process.returncode != 0:
            lines = self.log(name).read_text().strip().splitlines() or [f"exit status {process.returncode}"]
            missing = [line for line in lines if line.endswith(" is not installed")]
            if missing:
                raise Missing(missing[0])
            raise Failed(f"{name}: {lines[-1][:200]}")
        return said

    def program(self, name: str, *words: object, limit_s: float) -> dict[str, Any]:
        """A program of programs.py without fullbore: its own figures."""
        own = self.file(f"{name}.own.json")
        self.call(name, self.python, HERE / "programs.py", *words, "--json", own, limit_s=limit_s)
        return json.loads(own.read_text())

    def run(self, name: str, *words: object, limit_s: float, more: tuple[str, ...] = ()) -> tuple[dict, dict]:
        """The same under `fullbore run`: the report, and the program's own figures."""
        own, report = self.file(f"{name}.own.json"), self.file(f"{name}.report.json")
        ours = [self.fullbore, "run", "--name", name, "-o", self.file("runs"), "--json", report, "--force", *more, "--"]
        command = [self.python, HERE / "programs.py", *words, "--json", own]
        self.call(name, *ours, *command, limit_s=limit_s)
        return json.loads(report.read_text()), json.loads(own.read_text())

    def explain(self, trace: Path, *changes: str, more: tuple[str, ...] = ()) -> dict[str, Any]:
        words = [word for change in changes for word in ("--what-if", change)] + list(more)
        name = "-".join([trace.name.partition(".")[0], "explained", *changes, *more[:1]]).replace("=", "-")
        return json.loads(self.call(name, self.fullbore, "explain", trace, "--json", "-", *words, limit_s=60))


@contextlib.contextmanager
def started(words: list[str], directory: Path, errors: Any, **environment: str) -> Iterator[subprocess.Popen]:
    """A command in a session of its own, all of which ends with the block."""
    env = {**os.environ, **environment}
    how: dict[str, Any] = {"cwd": directory, "env": env, "text": True, "start_new_session": True}
    process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, **how)
    try:
        yield process
    finally:
        for number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError, subprocess.TimeoutExpired):
                os.killpg(process.pid, number)
                process.wait(timeout=5)


def step_ns(own: dict[str, Any], report: dict[str, Any] | None = None) -> float:
    """The mean by a program's own clock: of the steps that a report counts, else without the first third."""
    ends = own["ends_ns"]
    begin, end = ends[0] + (ends[-1] - ends[0]) / 3, ends[-1]
    marked: range = range(0)
    if report:
        begin, end = report["window"]["begin_ns"], report["window"]["end_ns"]
        under_profiler = report.get("device_window", {"first_step": 0, "steps": -1})
        first = under_profiler["first_step"]
        marked = range(first, first + under_profiler["steps"] + 1)  # the one after them pays for the profiler's end
    times = [
        after - before
        for step, (before, after) in enumerate(zip(ends, ends[1:]), start=1)
        if begin <= before and after <= end and step not in marked
    ]
    if len(times) < 2:
        raise Failed(f"{len(ends)} steps are too few")
    return sum(times) / len(times)


def resource(report: dict[str, Any], name: str, figure: str = "mean") -> float | None:
    return report["resources"].get(f"{name}{{gpu=0}}", {}).get(figure)


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
