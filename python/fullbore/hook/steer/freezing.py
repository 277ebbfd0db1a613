"""`--autopilot` where garbage collections cost steps: gc.freeze() takes what lives since the start out of their sight.

The training stays the same: a collection frees what nobody can reach, sooner or later. Objects that are frozen are
freed when their last reference goes, as always; only cycles of them stay, which a training that has begun rarely
leaves. Kept where collecting got cheaper by half and the steps did not get slower; else gc.unfreeze(). A script that
disabled the collector, or froze objects itself, is left alone.
"""

from __future__ import annotations

import gc
from typing import Any, Callable

from ..core import steps
from ..core.runtime import hook
from .period import MIN_SHARE, Period, ms, noise_of, say

MOST_LOOKS = 3  # periods in which collections cost little, before it is left alone
CHEAPER = 0.5
# Python 3.12 starts with 375 frozen objects; a script that freezes at its very start has thousands.
MOST_FROZEN_BY_PYTHON = 1000


class State:
    """The state of one training process."""

    def __init__(self) -> None:
        self.period = Period()
        self.since_ns = 0  # what collecting had taken when this period began
        self.before: tuple[Period, float] | None = None  # and what collecting took of each of its steps
        self.looks = 0
        self.is_elsewhere: Callable[[], bool] = lambda: False  # somebody else tries something
        self.ended: Callable[[], None] = lambda: None

    def is_trying(self) -> bool:
        return self.before is not None

    def start_anew(self) -> None:
        self.period, self.since_ns = Period(), hook.garbage_ns

    def forget(self) -> None:
        """Called in a forked child, which has steps of its own."""
        self.before, self.looks = None, 0
        self.start_anew()

    def spent(self) -> float:
        """ns a step."""
        return (hook.garbage_ns - self.since_ns) / max(1, len(self.period.times))


state = State()


def attach(is_elsewhere: Callable[[], bool], ended: Callable[[], None]) -> None:
    if not hasattr(gc, "freeze"):
        return
    state.is_elsewhere, state.ended = is_elsewhere, ended
    steps.after_step.append(after_step)
    hook.forget_in_child.append(state.forget)


def leave() -> None:
    """Nothing more is tried; what was kept stays."""
    state.before = None
    if after_step in steps.after_step:
        steps.after_step.remove(after_step)


def after_step(optimizer: Any, thread: Any, end: int) -> None:
    try:
        if state.is_elsewhere() and not state.is_trying():
            state.start_anew()
            return
        if not state.period.mark:
            state.since_ns = hook.garbage_ns  # until now it was spent on what came before the steps
        state.period.step()
        if state.period.is_long_enough():
            judge() if state.is_trying() else consider()
    except Exception as error:
        if not hook.fail("freezing", error):
            raise
        leave()


def is_managed_by_script() -> bool:
    """Then a collection of ours would come when it wants none, or gc.unfreeze() would undo its own gc.freeze()."""
    return not gc.isenabled() or gc.get_freeze_count() > MOST_FROZEN_BY_PYTHON


def consider() -> None:
    if is_managed_by_script():
        leave()
        return
    if state.spent() < MIN_SHARE * state.period.mean():
        state.looks += 1
        state.start_anew()
        if state.looks >= MOST_LOOKS:
            leave()
        return
    state.before = state.period, state.spent()
    gc.collect()  # or what is garbage by now would stay for ever
    gc.freeze()
    state.start_anew()


def judge() -> None:
    """A period with frozen objects is over."""
    assert state.before is not None
    before, spent = state.before
    after = state.period
    slower = after.mean() - before.mean() > noise_of(before, after)
    is_kept = state.spent() <= CHEAPER * spent and not slower
    if not is_kept:
        gc.unfreeze()
    outcome = "kept" if is_kept else "taken back"
    say(f"at step {after.begun_at_step:,}: gc.freeze(), {ms(before.mean())} -> {ms(after.mean())} ms, {outcome}")
    leave()
    state.ended()
