"""A thread that loops like a training, sampled from outside, as the line sampler does."""

from __future__ import annotations

import collections
import sys
import threading
import time
from collections.abc import Callable

import pytest
from hook_package import load

act = load("sampling.activities")
instructions = load("sampling.instructions")
levels = load("sampling.levels").levels
stacks = load("sampling.stacks")
SAMPLES = 25
needs_lock = pytest.mark.skipif(
    not instructions.holds_others(), reason="without the interpreter's lock a sample is no state that there was"
)
needs_columns = pytest.mark.skipif(sys.version_info < (3, 11), reason="instructions have no columns")


class Training:
    """A thread that steps and then does something beside."""

    def __init__(self, run: Callable[[Training], None]) -> None:
        self.loop = stacks.Loop()
        self.over = False
        self.steps = 0
        self.stepped = threading.Event()
        self.thread = threading.Thread(target=run, args=[self], daemon=True)

    def step(self) -> None:
        self.loop.learn(sys._getframe(1))  # the optimizer is no code of the user
        self.steps += 1
        self.stepped.set()

    def sampled(self) -> list:
        self.thread.start()
        self.stepped.wait()
        seen: list = []
        while len(seen) < SAMPLES:
            time.sleep(0.002)
            sample = stacks.read(levels(sys._current_frames()[self.thread.ident]), self.loop)
            if sample is not None:
                seen.append(sample)
        self.over = True
        return seen


def most(seen: list, what: str):
    return collections.Counter(getattr(sample, what) for sample in seen).most_common(1)[0][0]


def beside(body: Callable[[], object], release: Callable[[], object] = lambda: None) -> list:
    """Samples of a loop that calls `body` after each step. `release` lets it go on if it waits."""

    def train(training: Training) -> None:
        while not training.over:
            training.step()
            body()

    training = Training(train)
    seen = training.sampled()
    release()
    training.thread.join()
    return seen


def does(seen: list) -> int:
    return most(seen, "activity")
