"""What `--autopilot` judges a change by: steps before it and steps after it. And how it says what it did."""

from __future__ import annotations

import math
import statistics

from ..core import channel
from ..core.runtime import clock, hook

SOURCE = "--autopilot"
MIN_STEPS = 20  # in a period that is judged
MIN_NS = 1_000_000_000
BLOCKS = 8  # their means' spread is the noise
MIN_SHARE = 0.1  # of a step: less of it is not worth a change
MIN_GAIN, SURE_GAIN = 0.05, 0.2
MOST_STEPS = 20_000  # of a period: an epoch may have no end


class Period:
    """Steps under one setting: with so many workers, where that is what is tried."""

    def __init__(self, workers: int = 0) -> None:
        self.workers = workers
        self.begun_at_step = hook.steps
        self.waited_ns = 0
        self.times: list[int] = []  # of the steps; the first of an epoch begins with the epoch
        self.total_ns = 0  # of these: whether they are enough is asked at each step
        self.mark = 0

    def begin_epoch(self) -> None:
        self.mark = clock()

    def step(self) -> None:
        now = clock()
        if self.mark and len(self.times) < MOST_STEPS:
            self.times.append(now - self.mark)
            self.total_ns += now - self.mark
        self.mark = now

    def is_long_enough(self) -> bool:
        return len(self.times) >= MIN_STEPS and self.total_ns >= MIN_NS

    def mean(self) -> float:
        return statistics.fmean(self.times)

    def noise(self) -> float:
        """Half of the 95 % interval of the mean, by the means of blocks."""
        size = max(1, len(self.times) // BLOCKS)
        means = [statistics.fmean(self.times[at : at + size]) for at in range(0, size * BLOCKS, size)]
        return 2.36 * statistics.stdev(means) / len(means) ** 0.5  # Student's t, 7 degrees of freedom

    def wait(self) -> float:
        """ns a step."""
        return self.waited_ns / max(1, len(self.times))


def noise_of(one: Period, other: Period) -> float:
    """The noise of the difference of their means."""
    return math.hypot(one.noise(), other.noise())


def ms(ns: float) -> str:
    return f"{ns / 1e6:,.3g}" if ns < 1e9 else f"{ns / 1e6:,.0f}"


def say(text: str) -> None:
    if channel.env_int("WORLD_SIZE", 1) > 1:
        text = f"rank {channel.rank()}: {text}"
    hook.say("message", severity="warning", source=SOURCE, text=text)
