"""The line sampler: where in the user's own code the training thread is, and what it does there.

It starts at the first optimizer step, so never in a loader's worker. It is a daemon, so that a script which waits
for all its threads does not wait for it, and it has ended before the interpreter does: a thread that Python's end
cuts off inside a destructor of torch's (the garbage collector runs on whichever thread allocates) aborts the process.

Twenty samples a second name the hottest lines. The shares of what the loop does beside training come from samples
alone; where that is much of the time, they are taken as densely as the budget allows, until they are many. So they are
at first.
"""

from __future__ import annotations

import os
import random
import sys
import threading
import time
from typing import Any

from ..core import channel, steps
from ..core.frames import text_of_cell
from ..core.runtime import Thread, clock, hook, never_interrupted
from .activities import NETWORK
from .growth import Growth
from .levels import levels
from .stacks import FROM_PROCESS, NOTHING, Loop, Sample, all_wait, read

SPARSE_S, DENSE_S = 0.05, 0.01
JITTER = 0.5  # of the period, to either side: a loop of the same period must not always be met at the same line
BUDGET = 0.004  # of the time: what sampling may cost, in time on a core
SAMPLES_TO_JUDGE = 100  # after each so many, the density is chosen anew
SAMPLES_ENOUGH = 1000  # they tell a share of 30 % with a standard error of 1.5 points; twenty a second add to that
MUCH_BESIDE = 0.05  # of the samples, outside all that the hook times: the threshold of the finding host-other
MAX_PLACES = 8  # that wait for other processes: a loop has one or two
STOP_S = 1.0  # how long the interpreter's exit waits at most for a sample in progress, which takes microseconds


class Density:
    """How long to wait for the next sample."""

    def __init__(self) -> None:
        self.dense = True
        self.samples = self.beside = self.judged = 0
        self.cost_ns = 0.0  # of a sample, on average

    def note(self, phase: int, cost_ns: int) -> None:
        self.cost_ns += (cost_ns - self.cost_ns) / 16 if self.cost_ns else cost_ns
        self.samples += 1
        self.beside += phase == 0
        if self.samples >= SAMPLES_TO_JUDGE:
            self.judged += self.samples
            self.dense = self.beside >= MUCH_BESIDE * self.samples and self.judged < SAMPLES_ENOUGH
            self.samples = self.beside = 0

    def period_s(self) -> float:
        return min(SPARSE_S, max(DENSE_S, self.cost_ns / 1e9 / BUDGET)) if self.dense else SPARSE_S


USUAL_US, SOON_US = 5000, 5  # sys.getswitchinterval()
MOMENT_S = 0.005  # as long as the interpreter makes a thread wait that wants its lock


def come_unexpected(until: float) -> None:
    """Sleeps for `until` seconds, at most MOMENT_S, and then interrupts whatever runs.

    A thread that wants Python's lock waits until it is released, and only after 5 ms asks for it. So the sampler would
    meet a loop of Python code and short operations of torch always in the same operation, the one that releases the
    lock. For a moment it asks sooner. The interval is the process's: it is left alone if the script has set it, and set
    back at once.
    """
    if round(sys.getswitchinterval() * 1e6) != USUAL_US:
        return
    sys.setswitchinterval(SOON_US / 1e6)
    try:
        time.sleep(until)
    finally:
        if round(sys.getswitchinterval() * 1e6) == SOON_US:
            sys.setswitchinterval(USUAL_US / 1e6)


class Sampler:
    def __init__(self, ident: int, thread: Thread) -> None:
        self.ident = ident
        self.thread = thread
        self.known: dict[tuple[str, int], int] = {}
        self.fed_by: dict[tuple[str, int], str] = {}
        self.loop = Loop()
        self.density = Density()
        self.growth = Growth()
        self.alone = False  # all other threads waited for something when the last sample was taken
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
        # Opens nothing: a script that closes all descriptors meanwhile may have given the number to a file of its own
        # by the time that we close it.
        number = hook.here().number
        while hook.on and sampler is self:
            if running.acquire(timeout=self.density.period_s() * self.random.uniform(1 - JITTER, 1 + JITTER)):
                return
            begin = time.thread_time_ns()  # the wait for the interpreter's lock is not the script's cost
            try:
                if self.alone:  # another thread that wants the lock would get it sooner than it does without us
                    come_unexpected(MOMENT_S * self.random.random())
                self.sample(number)
                for call in hook.beside:
                    call()
            except Exception as error:
                if not hook.fail("line sampler", error):
                    raise
            cost_ns = time.thread_time_ns() - begin
            hook.extra_ns += cost_ns
            self.density.note(self.thread.phase, cost_ns)

    def sample(self, number: int) -> None:
        phase = self.thread.phase
        frames = sys._current_frames()
        stack = levels(frames.pop(self.ident, None))
        now = clock()
        frames.pop(threading.get_ident(), None)
        self.alone = all_wait(frames.values())
        if self.growth.is_due():
            steps.look_soon()
        seen = read(stack, self.loop) if stack else None
        if seen is not None:
            seen = self.with_process(seen)
            hook.record(channel.LINE, 0, number, now, now, self.number_of(seen), phase, seen.activity, seen.feeds)

    def with_process(self, seen: Sample) -> Sample:
        """Keeps the places that wait for what another process makes, and for which one, as far as that is known. What
        else of the network is seen there asks for it."""
        where = (seen.file, seen.line)
        if where in self.fed_by:
            asks = seen.activity == NETWORK and seen.feeds == NOTHING
            return seen._replace(feeds=FROM_PROCESS) if asks else seen
        if seen.feeds == FROM_PROCESS and len(self.fed_by) < MAX_PLACES:
            self.fed_by[where] = seen.peer
            places = [{"file": file, "line": line, "peer": peer} for (file, line), peer in self.fed_by.items()]
            hook.fact("fed_by", places)
        return seen

    def number_of(self, seen: Sample) -> int:
        where = (seen.file, seen.line)
        ident = self.known.get(where)
        if ident is None:
            ident = self.known[where] = len(self.known) + 1
            more = {"library": seen.library, "text": text_of_cell(seen.file, seen.line)}
            known = {key: value for key, value in more.items() if value}
            hook.say("line", id=ident, file=seen.file, line=seen.line, function=seen.function, **known)
        return ident


sampler: Sampler | None = None


def stop() -> None:
    """At the interpreter's end, and before a fork: from Python 3.12 on a process that forks is warned where it has a
    second thread, and ours must not be it. The next step starts it again."""
    try:
        if sampler is not None:
            sampler.stop()
            steps.look_soon()
    except Exception as error:
        if not hook.fail("line sampler", error):
            raise


def forget() -> None:
    global sampler
    if sampler is not None:
        sampler.growth.close()
    sampler = None


os.register_at_fork(before=never_interrupted(stop))
hook.forget_in_child.append(forget)


def after_step(optimizer: Any, thread: Thread, end: int) -> None:
    """Starts the sampler at the first step and after a fork, and follows the training to another thread."""
    global sampler
    if sampler is not None:
        if sampler.thread is not thread:
            sampler.ident, sampler.thread = threading.get_ident(), thread
        sampler.loop.learn(sys._getframe(1))
        sampler.growth.look(sys._getframe(1))
        if sampler.worker is None:
            sampler.start()
        return
    if hook.channel is None:
        return
    sampler = Sampler(threading.get_ident(), thread)
    sampler.loop.learn(sys._getframe(1))
    sampler.start()
    hook.at_end(stop)


def attach() -> None:
    """The training thread is the one that steps."""
    steps.now_and_then.append(after_step)
