"""The line sampler: where in the user's own code the training thread is, twenty times a second.

It starts at the first optimizer step, so never in a loader's worker. It is a daemon, so that a script which waits
for all its threads does not wait for it, and it has ended before the interpreter does: a thread that Python's end
cuts off inside a destructor of torch's (the garbage collector runs on whichever thread allocates) aborts the process.
"""

from __future__ import annotations

import atexit
import os
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
STOP_S = 1.0  # how long the interpreter's exit waits at most for a sample in progress, which takes microseconds


class Sampler:
    def __init__(self, ident: int, thread: Thread) -> None:
        self.ident = ident
        self.thread = thread
        self.known: dict[tuple[str, int], int] = {}
        self.random = random.Random()  # never the script's own generator
        self.running = threading.Lock()  # held until stop(): waiting for it is a sleep that can be ended at once
        self.worker: threading.Thread | None = None

    def start(self) -> None:
        self.running = threading.Lock()
        self.running.acquire()
        self.worker = threading.Thread(target=self.run, args=[self.running], name="fullbore-lines", daemon=True)
        self.worker.start()

    def stop(self) -> None:
        """Ends the thread and waits until it is gone. In a forked child, where it does not exist, does nothing."""
        worker, self.worker = self.worker, None
        if worker is not None and sampler is self:
            self.running.release()
            worker.join(STOP_S)

    def run(self, running: threading.Lock) -> None:
        number = hook.here().number
        while hook.on and sampler is self:
            if running.acquire(timeout=PERIOD_S * self.random.uniform(1 - JITTER, 1 + JITTER)):
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


def stop() -> None:
    """At the interpreter's end, and before a fork: from Python 3.12 on a process that forks is warned where it has a
    second thread, and ours must not be it. The next step starts it again."""
    try:
        if sampler is not None:
            sampler.stop()
    except Exception as error:
        hook.fail("line sampler", error)


def forget() -> None:
    global sampler
    sampler = None


os.register_at_fork(before=stop)
hook.forget_in_child.append(forget)


def after_step(optimizer: Any, thread: Thread, end: int) -> None:
    """Starts the sampler at the first step and after a fork, and follows the training to another thread."""
    global sampler
    if sampler is not None:
        if sampler.thread is not thread:
            sampler.ident, sampler.thread = threading.get_ident(), thread
        if sampler.worker is None:
            sampler.start()
        return
    if hook.channel is None:
        return
    sampler = Sampler(threading.get_ident(), thread)
    sampler.start()
    atexit.register(stop)


def attach() -> None:
    """The training thread is the one that steps."""
    steps.after_step.append(after_step)
