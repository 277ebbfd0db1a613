#!/usr/bin/env python3
"""How much longer the step of a training on the CPU takes after a pause, with a pool of two threads and with one.

    .venv/bin/python bench/explain/after_a_pause.py

A small convolutional network. Each round times a step right after another step, one after a while asleep, and one
after as long of Python on the same thread; steps that are not timed lie between them. Prints what more such a step
takes, by the means, and which part of the pause that is. With one thread, caches have gone cold (kPauseOfOne of
src/explain/replay/pipeline.h); of a pool, the other threads come back only when the scheduler finds them a core, and
the first one spins meanwhile: in whole trainings that costs more than here, and kPauseOfPool is from those.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import torch
from torch import nn

WARM_UP = 20  # steps
PAUSES_S = (0.01, 0.03, 0.06, 0.1, 0.3)
SECONDS = 6  # of pauses, of each length
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


def compute(seconds: float) -> None:
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


KINDS: dict[str, Callable[[float], None]] = {"none": lambda seconds: None, "asleep": time.sleep, "of Python": compute}


def means_ms(step: Callable[[], None], pause_s: float) -> dict[str, float]:
    """Of the steps that follow each kind of pause."""
    times: dict[str, list[float]] = {kind: [] for kind in KINDS}
    for _ in range(max(8, round(SECONDS / 2 / pause_s))):
        for kind, pause in KINDS.items():
            for _ in range(UNTIMED):
                step()
            pause(pause_s)
            begin = time.perf_counter()
            step()
            times[kind].append(1e3 * (time.perf_counter() - begin))
    return {kind: statistics.fmean(each) for kind, each in times.items()}


def main() -> None:
    print(f"torch {torch.__version__}")
    step = training()
    for threads in (2, 1):  # not in turns: a pool that was just resized would be timed
        torch.set_num_threads(threads)
        for _ in range(WARM_UP):
            step()
        for pause_s in PAUSES_S:
            means = means_ms(step, pause_s)
            usual = means.pop("none")
            said = [
                f"{kind} {each - usual:+5.1f} ms ({(each - usual) / 1e3 / pause_s:5.2f} of it)"
                for kind, each in means.items()
            ]
            print(
                f"threads: {threads}, {usual:.1f} ms a step; after {1e3 * pause_s:3.0f} ms {', '.join(said)}",
                flush=True,
            )


if __name__ == "__main__":
    main()
