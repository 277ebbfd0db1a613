"""The clock of the planted scripts, of whatever framework. It knows of no profiler."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path


class StepClock:
    """Times each step, from the end of one to the end of the next, and what is timed meanwhile, on any thread."""

    def __init__(self) -> None:
        self.steps: list[dict[str, float]] = []
        self.facts: dict[str, object] = {}
        self._now: dict[str, float] = {}
        self._started = os.environ.get("PLANTED_STARTED")  # a file to create once the first steps are done
        self._begin = time.perf_counter()

    @contextlib.contextmanager
    def timed(self, name: str) -> Iterator[None]:
        begin = time.perf_counter()
        try:
            yield
        finally:
            self._count(name, begin)

    def waits(self, loader: Iterable, first: str = "wait", epochs: int = 1) -> Iterator:
        """The loader's batches; the time of each `next` counts as `wait`. What an epoch costs besides counts as
        `first`: its first `next`, which starts the workers, and its last one, which ends them and brings no batch."""
        for _ in range(epochs):
            with self.timed(first):
                batches = iter(loader)
                batch = next(batches, None)
            while batch is not None:
                yield batch
                begin = time.perf_counter()
                batch = next(batches, None)
                self._count("wait" if batch is not None else first, begin)

    def _count(self, name: str, begin: float) -> None:
        self._now[name] = self._now.get(name, 0.0) + time.perf_counter() - begin

    def step_done(self) -> None:
        now = time.perf_counter()
        self.steps.append({"wall": now - self._begin, **self._now})
        self._begin, self._now = now, {}
        if self._started and len(self.steps) == 5:
            Path(self._started).touch()

    def write(self, path: Path) -> None:
        path.write_text(json.dumps({"steps": self.steps, **self.facts}))
