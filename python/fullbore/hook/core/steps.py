"""Where a step ends, which optimizer counts, and which loader feeds it.

An optimizer that steps inside another one's step (SAM, wrappers) is part of it.

Most steps are usual ones: the same optimizer, on the same thread, fed by the same loader. Such a step needs no more
than a record; what follows the training looks at every step only where it has to, and else at one in EVERY.
"""

from __future__ import annotations

import sys
import weakref
from typing import Any

from . import channel, native
from .frames import HERE
from .runtime import Thread, clock, get_ident, hook
from .where import say_where

# The first optimizer that steps is the primary one, whose steps are counted; after this many steps of others without
# one of its own, another takes over (a warm-up phase with an optimizer of its own).
PATIENCE = 50
# The loader that feeds the steps is reported at the first step, and again once another has fed this many in a row.
MIN_STEPS_IN_A_ROW = 5


class Steps:
    """Which optimizer is primary, and which loader feeds it."""

    def __init__(self) -> None:
        self.primary: Any = None  # a weak reference to the optimizer
        self.steps_of_others = 0
        self.training_loader = 0
        self.fed_by_another = 0
        self.look_at = 0  # the step after which `now_and_then` is called next
        self.wanted = 0  # a step after which it is called besides
        self.looked: tuple[int, int] = (0, 0)  # the step after which it was called last, and when
        self.thread: Any = None  # that stepped last
        self.in_window = 0  # 1 while a profiler slows the steps down: they count in no throughput

    def counts(self, optimizer: Any) -> bool:
        primary = None if self.primary is None else self.primary()
        if primary is None or self.steps_of_others >= PATIENCE:
            self.primary = weakref.ref(optimizer)
            primary = optimizer
        if primary is optimizer:
            self.steps_of_others = 0
            return True
        self.steps_of_others += 1
        return False

    def note_feed(self, thread: Thread) -> None:
        loader = thread.fed_by
        if loader is None or loader.id == self.training_loader:
            self.fed_by_another = 0
            return
        self.fed_by_another += 1
        if self.training_loader == 0 or self.fed_by_another >= MIN_STEPS_IN_A_ROW:
            self.training_loader = loader.id
            self.fed_by_another = 0
            hook.say("training_loader", id=loader.id)
            hook.fact("batch_shape", loader.counter.shape)


state = Steps()
FIRST_STEPS = 3
after_step: list = []  # called with (optimizer, thread, end) after each step that counts: while there are any
now_and_then: list = []  # the same, after some steps only: see is_time_to_look
after_first_steps: list = []  # the same, for the first few only
at_unusual_step: list = []  # called with the optimizer, after each step but the usual ones
hook.forget_in_child.append(lambda: state.__init__())  # type: ignore[misc]
FIRST_LOOKS = 8
# Steps between two later looks: so many, or where they are so short that a look would show among them, more.
EVERY, EVERY_SHORT, SHORT_NS = 64, 256, 1_000_000


def look_soon() -> None:
    """After the next step, `now_and_then` is called."""
    state.look_at = hook.usual_until = 0


def look_after(step: int) -> None:
    """After that step, if not before, `now_and_then` is called."""
    state.wanted = step
    if hook.steps < step < state.look_at:
        state.look_at = step


def is_time_to_look(thread: Thread, now: int) -> bool:
    """After each of the first steps, then one in EVERY, and whenever another thread steps."""
    if hook.steps < state.look_at and thread is state.thread:
        return False
    state.thread = thread
    (step, then), state.looked = state.looked, (hook.steps, now)
    every = EVERY_SHORT if now - then < SHORT_NS * (hook.steps - step) else EVERY
    state.look_at = hook.steps + 1 if hook.steps < FIRST_LOOKS else (hook.steps // every + 1) * every
    if hook.steps < state.wanted < state.look_at:
        state.look_at = state.wanted
    return True


def note_usual(optimizer: Any, thread: Thread) -> None:
    """This step counted: the next one like it is a usual one, if nothing has to follow each step."""
    if after_step or state.fed_by_another or state.in_window or hook.steps <= FIRST_STEPS:
        hook.usual_until = 0
        return
    hook.usual_optimizer, hook.usual_thread, hook.usual_loader = id(optimizer), thread, thread.fed_by
    hook.usual_until = state.look_at


def is_usual(optimizer: Any, thread: Thread) -> bool:
    return (
        thread is hook.usual_thread
        and id(optimizer) == hook.usual_optimizer
        and thread.fed_by is hook.usual_loader
        and hook.steps + 1 < hook.usual_until
    )


def enter_step(optimizer: Any) -> None:
    if not hook.on:
        return
    try:
        if hook.channel is None:
            hook.open()
        thread = hook.threads.get(get_ident()) or hook.here()
        under_way = thread.open_steps
        for place, step in enumerate(under_way):  # a step that ended by an exception left its entry
            if step[0] == id(optimizer):
                thread.phase = step[2]
                del under_way[place:]
                break
        under_way.append((id(optimizer), clock(), thread.phase))
        thread.phase = channel.OPTIMIZER
    except Exception as error:
        if not hook.fail("optimizer step", error):
            raise


def leave_step(optimizer: Any) -> None:
    if not hook.on:
        return
    try:
        end = clock()
        thread = hook.threads.get(get_ident()) or hook.here()
        under_way = thread.open_steps
        if not under_way or under_way[-1][0] != id(optimizer):
            return
        _, begin, thread.phase = under_way.pop()
        if under_way:
            return
        if is_usual(optimizer, thread):
            hook.record(channel.OPTIMIZER, 0, thread.number, begin, end, 1)
            hook.steps += 1
        else:
            step_ended(optimizer, thread, begin, end)
    except Exception as error:
        if not hook.fail("optimizer step", error):
            raise


def step_ended(optimizer: Any, thread: Thread, begin: int, end: int) -> None:
    """Any step but a usual one. May raise."""
    for follow in at_unusual_step:
        follow(optimizer)
    if state.counts(optimizer):
        count_step(optimizer, thread, begin, end)
    else:
        hook.usual_until = 0
        hook.record(channel.OPTIMIZER, 0, thread.number, begin, end, 0)


def count_step(optimizer: Any, thread: Thread, begin: int, end: int, marked: int = 0) -> None:
    """Records a step that ends the step of the training; `marked` by the script itself. May raise."""
    if thread.phase or thread.in_next or thread.in_forward or thread.in_fetch:
        end_what_was_left(thread)
    hook.record(channel.OPTIMIZER, 0, thread.number, begin, end, 1, marked, state.in_window)
    hook.steps += 1
    state.note_feed(thread)
    for follow in tuple(after_step):
        follow(optimizer, thread, end)
    if is_time_to_look(thread, end):
        for follow in now_and_then:
            follow(optimizer, thread, end)
    if hook.steps <= FIRST_STEPS:
        say_where("optimizer_step")
        for follow in after_first_steps:
            follow(optimizer, thread, end)
    note_usual(optimizer, thread)


def end_what_was_left(thread: Thread) -> None:
    """An exception of the script's may come up between two instructions of a wrapper of ours, and leave something under
    way that nobody ends. What is under way has a frame of ours on the stack, outside of those that end this step."""
    frame: Any = sys._getframe(1)
    while frame is not None and is_ours(frame):
        frame = frame.f_back
    while frame is not None:
        if is_ours(frame):
            return
        frame = frame.f_back
    thread.phase = 0
    thread.in_next = thread.in_forward = thread.in_fetch = False


def is_ours(frame: Any) -> bool:
    return frame.f_code.co_filename.startswith(HERE)


hook.step_ended = step_ended
if native.extension is not None:
    enter_step, leave_step = hook.enter_step, hook.leave_step
