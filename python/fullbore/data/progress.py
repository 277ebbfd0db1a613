"""A progress line on standard error, if that is a terminal."""

from __future__ import annotations

import sys
import time

WIDTH = 28
PERIOD_S = 0.1  # faster than this nobody can read


class ProgressBar:
    """The line of one epoch, rewritten in place; a newline ends it."""

    def __init__(self, batches: int) -> None:
        self.batches = batches
        self.samples = 0
        self.begin = self.shown = time.monotonic()
        self.on = sys.stderr is not None and sys.stderr.isatty()

    def step(self, epoch: int, index: int, rows: int) -> None:
        self.samples += rows
        now = time.monotonic()
        if self.on and (now - self.shown >= PERIOD_S or index + 1 == self.batches):
            self.shown = now
            done = min(1.0, (index + 1) / max(self.batches, 1))
            bar = "█" * int(done * WIDTH) + "░" * (WIDTH - int(done * WIDTH))
            rate = self.samples / max(now - self.begin, 1e-9)
            text = f"\repoch {epoch} {bar} {index + 1:,}/{self.batches:,} batches, {rate:,.0f} samples/s\x1b[K"
            sys.stderr.write(text)
            sys.stderr.flush()

    def end(self) -> None:
        if self.on:
            sys.stderr.write("\n")
            self.on = False
