"""Calls that are a whole step of the training: forward pass, backward pass and update in one compiled function.

What happens inside is one piece for the host. The batch may be handed to the call, or be taken inside it: by Python
code, which `took_batch` tells as it happens, or within the compiled code, which can only be told afterwards
(`took_inside`). One call may make several steps; each begins with its batch.
"""

from __future__ import annotations

from typing import Any

from . import channel
from .runtime import Thread, clock, hook
from .steps import count_step, state
from .waits import Loader

# What a forward record says of such a call (`a` in src/record/channel.h): nothing inside it is seen, or its passes are.
WHOLE, IN_PARTS = 2, 1


class StepCall:
    """One such call in progress, on the thread that makes it. Steps of optimizers inside it are part of it."""

    __slots__ = ("thread", "owner", "kind", "outer_forward", "begin", "at", "fed", "inside", "loader", "outer_phase")

    def __init__(self, thread: Thread, owner: Any, kind: int) -> None:
        self.thread = thread
        self.owner = owner
        self.kind = kind
        self.fed = False  # a batch was taken that no step has used yet
        self.inside: tuple[int, int, int] | None = None  # batches, samples, ns that the compiled code waited for them
        self.loader: Loader | None = None
        self.outer_phase, thread.phase = thread.phase, channel.FORWARD
        self.outer_forward, thread.in_forward = thread.in_forward, kind == WHOLE or thread.in_forward
        self.begin = self.at = clock()
        thread.open_steps.append((self, self.begin, self.outer_phase))

    def took_batch(self, begin: int, end: int) -> None:
        """Python code inside the call waited for a batch: what came before it belongs to the step before."""
        if self.fed:
            self.close_step(begin)
        self.at, self.fed = end, True

    def took_inside(self, batches: int, samples: int, wait_ns: int, loader: Loader) -> None:
        self.inside = (batches, samples, wait_ns)
        self.loader = loader

    def close_step(self, end: int, samples: int = 0) -> None:
        number = self.thread.number
        hook.record(channel.FORWARD, 0, number, self.at, end, self.kind, samples if self.kind == WHOLE else 0)
        if samples and self.kind != WHOLE:
            hook.record(channel.FORWARD, 0, number, end, end, WHOLE, samples)
        if state.counts(self.owner):
            count_step(self.owner, self.thread, end, end)
        self.at = end

    def close_steps_inside(self, end: int) -> None:
        """Of several steps in one call only their sums are known: they count as equally long."""
        assert self.inside is not None and self.loader is not None
        batches, samples, wait_ns = self.inside
        loader, thread = self.loader, self.thread
        ns = (end - self.begin) // batches
        wait_ns = min(wait_ns // batches, ns)
        for number in range(batches):
            begin = self.begin + number * ns
            taken = samples * (number + 1) // batches - samples * number // batches
            hook.record(channel.NEXT, loader.id, thread.number, begin, begin + wait_ns, taken, -1)
            thread.loader, thread.fed_by = loader.id, loader
            self.at = begin + wait_ns
            self.close_step(end if number + 1 == batches else begin + ns)


def current(thread: Thread) -> StepCall | None:
    """The call that this thread is in."""
    for step in thread.open_steps:
        if isinstance(step[0], StepCall):
            return step[0]
    return None


def enter_call(owner: Any, kind: int = WHOLE) -> StepCall | None:
    """None where this call is not a step of its own: inside another one, in a loader, in a worker, or switched off."""
    if not hook.on or hook.is_worker:
        return None
    try:
        thread = hook.here()
        if thread.in_next or (thread.open_steps and current(thread) is not None):
            return None
        return StepCall(thread, owner, kind)
    except Exception as error:
        if not hook.fail("entering a step", error):
            raise
        return None


def leave_call(call: StepCall, steps: bool = True, samples: int = 0) -> None:
    """Ends it, and records its steps if it made any. `samples` counts where the batch came from no loader."""
    end = clock()
    thread = call.thread
    thread.phase, thread.in_forward = call.outer_phase, call.outer_forward
    for place, step in enumerate(thread.open_steps):
        if step[0] is call:
            del thread.open_steps[place:]
            break
    if not hook.on or not steps:
        return
    try:
        if hook.channel is None:
            hook.open()
        if call.inside is not None and call.inside[0] > 0:
            call.close_steps_inside(end)
        else:
            call.close_step(end, samples)
    except Exception as error:
        if not hook.fail("leaving a step", error):
            raise
