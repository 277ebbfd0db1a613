"""The line sampler: where in the user's own code the training thread is, twenty times a second.

It starts at the first optimizer step, so never in a loader's worker. It is a daemon, so that a script which waits
for all its threads does not wait for it, and it has ended before the interpreter does: a thread that Python's end
cuts off inside a destructor of torch's (the garbage collector runs on whichever thread allocates) aborts the process.
"""

from __future__ import annotations

import atexit
import random
import sys
import threading
import time
from typing import Any

from . import channel, steps
from .frames import place, user_frame
from .runtime import Thread, clock, hook

PERIOD_S = 0.05
JITTER = 0.5  # of the period, to either side: a loop of the same period must not always be met at the same line
STOP_S = 1.0  # the longest that the interpreter's end waits for a sample under way, which takes microseconds


class Sampler:
    def __init__(self, ident: int, thread: Thread) -> None:
        self.ident = ident
        self.thread = thread
        self.known: dict[tuple[str, int], int] = {}
        self.random = random.Random()  # never the script's own generator
        self.running = threading.Lock()  # held until stop(): to wait for it is a sleep that ends at once when told
        self.running.acquire()
        self.worker = threading.Thread(target=self.run, name="fullbore-lines", daemon=True)

    def start(self) -> None:
        self.worker.start()
        atexit.register(self.stop)

    def stop(self) -> None:
        """Ends the thread and sees it gone. In a forked child, where it does not exist, there is nothing to end."""
        if sampler is self:
            self.running.release()
            self.worker.join(STOP_S)

    def run(self) -> None:
        number = hook.here().number
        while hook.on and sampler is self:
            if self.running.acquire(timeout=PERIOD_S * self.random.uniform(1 - JITTER, 1 + JITTER)):
                return
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
    sampler.start()


def attach() -> None:
    """The training thread is the one that steps."""
    steps.after_step.append(after_step)
