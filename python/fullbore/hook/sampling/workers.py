"""The line sampler of a loader's worker process: in which line the dataset's own code is while a batch is fetched.

Ten samples a second, from a daemon thread that starts with the worker's first fetch. It has ended before the
interpreter does, which only a spawned worker comes to: a forked one leaves by os._exit().
"""

from __future__ import annotations

import atexit
import os
import random
import sys
import threading
import time
from typing import Any

from ..core import channel
from ..core.frames import STANDARD_LIBRARY, is_user_file, text_of_cell
from ..core.runtime import clock, hook, never_interrupted
from .levels import Level, innermost_of_user, levels
from .stacks import activity_of, module_of, package_of

PERIOD_S = 0.1
JITTER = 0.5  # of the period, to either side
BUDGET = 0.002  # of the time: what sampling may cost, in time on a core
FETCH = "torch.utils.data._utils.fetch"  # the module whose frame encloses the dataset's code
MAX_LINES = 256  # the recorder keeps the hottest few; a program has no more of them that matter


class WorkerSampler:
    def __init__(self, ident: int, loader: int) -> None:
        self.ident = ident
        self.loader = loader
        self.thread = hook.here()
        self.known: dict[tuple[str, int, str], int] = {}
        self.random = random.Random()  # never the script's own generator
        self.running = threading.Lock()  # held until stop()
        self.running.acquire()
        self.cost_s = 0.0  # of a sample, on average
        self.worker = threading.Thread(target=self.run, name="fullbore-lines", daemon=True)
        self.worker.start()

    def stop(self) -> None:
        if self.running.locked():
            self.running.release()
            self.worker.join(1.0)

    def run(self) -> None:
        number = hook.here().number
        while hook.on:
            period_s = max(PERIOD_S, self.cost_s / BUDGET)
            if self.running.acquire(timeout=period_s * self.random.uniform(1 - JITTER, 1 + JITTER)):
                return
            begin = time.thread_time()
            try:
                if self.thread.in_fetch:
                    self.sample(number)
            except Exception as error:
                if not hook.fail("line sampler of a worker", error):
                    raise
            self.cost_s += (time.thread_time() - begin - self.cost_s) / 8

    def sample(self, number: int) -> None:
        frame = sys._current_frames().get(self.ident)
        inner = levels_of_fetch(levels(frame))
        if not inner:
            return
        (file, line), function = where(inner)
        library = library_of(inner)
        ident = self.known.get((file, line, library))
        if ident is None:
            if len(self.known) >= MAX_LINES:
                return
            ident = self.known[(file, line, library)] = len(self.known) + 1
            more = {"library": library, "text": text_of_cell(file, line)}
            known = {key: value for key, value in more.items() if value}
            hook.say("line", id=ident, file=file, line=line, function=function, **known)
        now, activity = clock(), activity_of(inner, None, inner[0]).activity
        hook.record(channel.LINE, self.loader, number, now, now, ident, channel.FETCH, activity, 0)


def levels_of_fetch(stack: list[Level]) -> list[Level]:
    """What the fetch calls, innermost first: a forked worker's stack goes on to the training loop."""
    for number, at in enumerate(stack):
        if module_of(at.frame) == FETCH:
            return stack[:number]
    return []


def where(inner: list[Level]) -> tuple[tuple[str, int], str]:
    """The user's innermost line, or where the dataset is a library's, the library's."""
    user = innermost_of_user(inner) or inner[0]
    return user.place(), user.code.co_name


def library_of(inner: list[Level]) -> str:
    """Whose code the user's line is waiting for, or else the dataset's own; "" where that is Python's or torch's."""
    for at in inner:
        name = at.code.co_filename
        if is_user_file(name):
            break
        package = package_of(at.frame)
        is_pythons = name.startswith((STANDARD_LIBRARY + os.sep, "<")) and "-packages" not in name
        if package not in ("", "torch", "_fullbore_hook") and not is_pythons:
            return package
    return ""


sampler: Any = None


def begin(loader: int) -> None:
    """The calling thread of this worker begins its first fetch."""
    global sampler
    if sampler is None and hook.channel is not None:
        sampler = WorkerSampler(threading.get_ident(), loader)
        atexit.register(never_interrupted(stop))


def stop() -> None:
    """At the end, and before a fork: a process that forks with a second thread is warned from Python 3.12 on."""
    global sampler
    if sampler is not None:
        sampler.stop()
        sampler = None


def forget() -> None:
    global sampler
    sampler = None


def attach() -> None:
    hook.worker_begins.append(begin)
    os.register_at_fork(before=never_interrupted(stop))
    hook.forget_in_child.append(forget)
