"""The line sampler: where in the user's own code the training thread is, twenty times a second.

It starts at the first optimizer step, so never in a loader's worker, and it runs as a daemon: it holds nothing
that the interpreter's end would wait for.
"""

from __future__ import annotations

import random
import sys
import threading
import time
from typing import Any

from . import channel
from .frames import place, user_frame
from .runtime import Thread, clock, hook

PERIOD_S = 0.05
JITTER = 0.5  # of the period, to either side: a loop of the same period must not always be met at the same line


class Sampler:
    def __init__(self, ident: int, thread: Thread) -> None:
        self.ident = ident
        self.thread = thread
        self.known: dict[tuple[str, int], int] = {}
        self.random = random.Random()  # never the script's own generator

    def run(self) -> None:
        number = hook.here().number
        while hook.on and sampler is self:
            time.sleep(PERIOD_S * self.random.uniform(1 - JITTER, 1 + JITTER))
            begin = time.thread_time_ns()  # the wait for the interpreter's lock is not the script's cost
            try:
                self.sample(clock(), number)
            except Exception as error:
                hook.fail("line sampler", error)
            hook.extra_ns += time.thread_time_ns() - begin

    def sample(self, now: int, number: int) -> None:
        phase = self.thread.phase
        frame = user_frame(sys._current_frames().get(self.ident))
        if frame is None:
            return
        where = place(frame)
        ident = self.known.get(where)
        if ident is None:
            ident = self.known[where] = len(self.known) + 1
            hook.say("line", id=ident, file=where[0], line=where[1], function=frame.f_code.co_name)
        hook.record(channel.LINE, 0, number, now, now, ident, phase)


sampler: Sampler | None = None


def forget() -> None:
    global sampler
    sampler = None


hook.forget_in_child.append(forget)


def after_step(optimizer: Any, thread: Thread, end: int) -> None:
    """Starts the sampler at the first step, and follows the training to another thread."""
    global sampler
    if sampler is not None:
        if sampler.thread is not thread:
            sampler.ident, sampler.thread = threading.get_ident(), thread
        return
    if hook.channel is None:
        return
    sampler = Sampler(threading.get_ident(), thread)
    threading.Thread(target=sampler.run, name="fullbore-lines", daemon=True).start()
