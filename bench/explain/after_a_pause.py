#!/usr/bin/env python3
"""How much longer the step of a training on the CPU takes after a pause, with a pool of two threads and with one.

    .venv/bin/python bench/explain/after_a_pause.py

A small convolutional network. Each round times a step right after another step, one after 60 ms asleep, and one after
60 ms of Python on the same thread; steps that are not timed lie between them. Prints the ratios to the step without a
pause: of the medians, and of the means. What predictions assume of pauses (src/explain/replay/pipeline.h) is from whole
trainings.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import torch
from torch import nn

WARM_UP = 20  # steps
ROUNDS = 100
PAUSE_S = 0.06
UNTIMED = 2  # steps, so that no pause is felt in the next one's time


def training() -> Callable[[], None]:
    """A step of it."""
    images, labels = torch.randn(16, 3, 32, 32), torch.randint(10, (16,))
    model = nn.Sequential(
        nn.Conv2d(3, 16, 3),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(32, 10),
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)

    def step() -> None:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()

    return step


def compute() -> None:
    end = time.perf_counter() + PAUSE_S
    while time.perf_counter() < end:
        pass


PAUSES: dict[str, Callable[[], None]] = {
    "none": lambda: None,
    "asleep": lambda: time.sleep(PAUSE_S),
    "of Python": compute,
}


def times_ms(step: Callable[[], None]) -> dict[str, list[float]]:
    """Of the steps that follow each kind of pause."""
    times: dict[str, list[float]] = {kind: [] for kind in PAUSES}
    for _ in range(ROUNDS):
        for kind, pause in PAUSES.items():
            for _ in range(UNTIMED):
                step()
            pause()
            begin = time.perf_counter()
            step()
            times[kind].append(1e3 * (time.perf_counter() - begin))
    return times


def main() -> None:
    print(f"torch {torch.__version__}, {ROUNDS} rounds")
    step = training()
    for threads in (2, 1):  # not in turns: a pool that was just resized would be timed
        torch.set_num_threads(threads)
        for _ in range(WARM_UP):
            step()
        times = times_ms(step)
        none = times.pop("none")
        said = [
            f"after {1e3 * PAUSE_S:.0f} ms {kind} {statistics.median(each) / statistics.median(none):.1f}x "
            f"(mean {statistics.fmean(each) / statistics.fmean(none):.1f}x)"
            for kind, each in times.items()
        ]
        print(f"threads: {threads}, {statistics.median(none):.1f} ms a step; {', '.join(said)}")


if __name__ == "__main__":
    main()
