"""What every process is asked, whatever it trains with: its garbage collections, and at its end, the `bye`."""

from __future__ import annotations

import atexit
import gc
import sys
from typing import Any

from . import channel, native
from .leaving import clear_away
from .runtime import clock, enter, guarded, hook, leave, never_interrupted

GARBAGE_NS = 1_000_000  # a collection shorter than this is not worth a record
CALIBRATION_ROUNDS = 200


class Garbage:
    """Where a collection is timed without the extension, whose callback runs no Python code: Python drops what a
    callback of gc.callbacks raises, and runs the script's functions for signals where Python code begins."""

    def __init__(self) -> None:
        self.begin = 0

    def note(self, phase: str, _: Any) -> None:
        if phase == "start":
            self.begin = clock()
            return
        end = clock()
        hook.garbage_ns += end - self.begin
        if end - self.begin >= GARBAGE_NS and hook.on:
            hook.record(channel.OTHER, channel.GARBAGE_COLLECTION, hook.here().number, self.begin, end)


def attach() -> None:
    gc.callbacks.append(never_interrupted(Garbage().note) if native.extension is None else hook.note_collection)
    atexit.register(say_goodbye)


@guarded
def say_goodbye() -> None:
    if hook.channel is None:
        return
    note_killed_worker(getattr(sys, "last_value", None))
    hook.say("bye", hook_ns=hook.channel.ring.written() * cost_of_an_event() + hook.extra_ns, steps=hook.steps)
    hook.on = False
    clear_away(hook.directory)


def note_killed_worker(raised: Any) -> None:
    """What torch says of a loader's worker that a signal ended, where the script ended by that."""
    text = str(raised) if isinstance(raised, RuntimeError) else ""
    if text.startswith("DataLoader worker") and "signal: " in text:
        hook.fact("worker_killed_by", text.partition("signal: ")[2].partition(".")[0])


def cost_of_an_event() -> int:
    """What entering and leaving a phase and recording it takes here, in ns: measured on a scratch ring."""
    ours, (hook.record, _) = hook.record, channel.make_writer(-1, channel.HEADER_BYTES + channel.RECORD_BYTES, 1)
    begin = clock()
    for _ in range(CALIBRATION_ROUNDS):
        span = enter(channel.OTHER)
        if span is not None:
            leave(span, channel.OTHER)
    taken = clock() - begin
    hook.record = ours
    return taken // CALIBRATION_ROUNDS
