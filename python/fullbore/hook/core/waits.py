"""The loaders of the script, of whatever library, and the waits in `next` of their iterators.

A loader inside a loader belongs to the outer wait.
"""

from __future__ import annotations

import functools
import os
import weakref
from typing import Any, Callable

from . import channel, native
from .batch import BatchCounter
from .runtime import Thread, clock, get_ident, guarded, hook

# An iterator created this shortly before its first `next` (a `for` loop) is part of that wait: one record for both.
SAME_WAIT_NS = 1_000_000


class Loader:
    """One loader of the script: what is written about it, and how its batches are counted."""

    __slots__ = ("id", "counter", "source", "outcomes")

    def __init__(self, ident: int, batch_size: int | None, source: Any) -> None:
        self.id = ident
        self.source = weakref.ref(source)
        # What became of the settings that it was made with; a loader made in the `for` itself is soon gone.
        self.outcomes: dict[str, str] = source.__dict__.get("_fullbore_outcomes", {})
        self.counter = BatchCounter(batch_size)

    def tells_ready(self, iterator: Any) -> bool:
        """Whether `ready` has an answer for this iterator: asked once, because asking at each batch costs."""
        return type(self).ready is not Loader.ready

    def ready(self, iterator: Any) -> int:
        """Batches that are ready when `next` is entered; -1 if unknown. Must not raise."""
        return -1


class PythonEpoch:
    """What an iterator carries: its loader, and the time its creation took, which counts for the first batch."""

    __slots__ = ("loader", "begin", "end", "tells_ready")

    def __init__(self, loader: Loader, begin: int, end: int, tells_ready: bool = True) -> None:
        self.loader = loader
        self.begin = begin  # 0 once the first batch came
        self.end = end
        self.tells_ready = tells_ready


Epoch: Any = PythonEpoch if native.extension is None else native.extension.Epoch

loaders: dict[int, Loader] = {}
kept_alive: list[Any] | None = None  # for drain.py


def forget() -> None:
    """An iterator that was begun before keeps its Loader, whose number is another's by now."""
    for loader in loaders.values():
        loader.id = 0
    loaders.clear()


hook.forget_in_child.append(forget)
looks: list[Callable[[Any], None]] = []  # called with the next batch, once each; they do not raise
LoaderOf = Callable[[Any], Loader]
After = Callable[[Any, "Wait", bool], None]


def introduced(source: Any, make: type[Loader], about: Callable[[Any], Any]) -> Loader:
    """The Loader of one of the script's loaders; reports it to the recorder when it is new."""
    here = os.getpid(), hook.runs  # a loader that was pickled into this process brings the id of another
    then, ident = source.__dict__.get("_fullbore_id", (here, 0))
    loader = loaders.get(ident) if then == here else None
    if loader is None:
        ident = len(loaders) + 1
        said = about(source)
        loader = loaders[ident] = make(ident, said["args"]["batch_size"], source)
        if kept_alive is not None:
            kept_alive.append(source)
        source.__dict__["_fullbore_id"] = (here, ident)
        hook.say("loader", id=ident, where=where_made(source), **said)
    return loader


def where_made(source: Any) -> str | None:
    where = source.__dict__.get("_fullbore_where")
    return None if where is None else f"{where[0]}:{where[1]}"


def new_epoch(iterator: Any, loader_of: LoaderOf) -> Any:
    """For an iterator that other code made than its loader's __iter__. May raise."""
    loader = loader_of(iterator)
    epoch = iterator.__dict__["_fullbore_epoch"] = Epoch(loader, 0, 0, loader.tells_ready(iterator))
    return epoch


class Wait:
    """One `next` in progress."""

    __slots__ = ("thread", "epoch", "outer_phase", "ready", "begin")

    def __init__(self, iterator: Any, thread: Thread, loader_of: LoaderOf) -> None:
        self.epoch = epoch = iterator.__dict__.get("_fullbore_epoch") or new_epoch(iterator, loader_of)
        self.ready = epoch.loader.ready(iterator) if epoch.tells_ready else -1
        self.thread = thread
        self.outer_phase, thread.phase = thread.phase, channel.NEXT
        thread.loader = epoch.loader.id
        thread.in_next = True
        self.begin = clock()


def enter_next(iterator: Any, loader_of: LoaderOf) -> Wait | None:
    """None where this wait is not ours to time: inside another one, in a worker, or switched off.

    `loader_of` gives the loader of an iterator that is met for the first time.
    """
    if not hook.on:
        return None
    try:
        thread = hook.threads.get(get_ident()) or hook.here()
        if thread.in_next:
            return None
        if hook.channel is None:
            hook.open()
        return None if hook.is_worker else Wait(iterator, thread, loader_of)
    except Exception as error:
        if not hook.fail("next", error):
            raise
        return None


def leave_next(wait: Wait, batch: Any, got: bool) -> None:
    end = clock()
    thread, epoch, begin = wait.thread, wait.epoch, wait.begin
    thread.in_next = False
    thread.phase = wait.outer_phase
    if not hook.on:
        return
    try:
        loader, number = epoch.loader, thread.number
        samples, elements = loader.counter.count(batch) if got else (0, 0)
        first = 0
        if epoch.begin:
            first = 1
            if begin - epoch.end < SAME_WAIT_NS:
                begin = epoch.begin
            else:
                hook.record(channel.NEXT, loader.id, number, epoch.begin, epoch.end, 0, -1, 1)
            epoch.begin = 0
        hook.record(channel.NEXT, loader.id, number, begin, end, samples, wait.ready, first, elements)
        if got:
            thread.fed_by = loader
    except Exception as error:
        if not hook.fail("next", error):
            raise


hook.new_epoch = new_epoch
if native.extension is not None:
    enter_next, leave_next = hook.enter_next, hook.leave_next


@guarded
def show(batch: Any) -> None:
    """To those who wait for a batch that was handed to the script: not where a loader asks another one."""
    if not hook.here().in_next:
        waiting, looks[:] = tuple(looks), []
        for look in waiting:
            look(batch)


def timed_next(take: Callable[[Any], Any], loader_of: LoaderOf, after: After | None = None) -> Callable[[Any], Any]:
    """An iterator's `__next__` that calls `take` and records the wait; then `after(iterator, wait, whether a batch
    came)`, which must not raise."""
    if native.extension is not None and after is None:
        run = hook.run_next

        @functools.wraps(take)
        def timed(self: Any) -> Any:
            batch = run(take, loader_of, self)
            if looks:
                show(batch)
            return batch

        return timed

    @functools.wraps(take)
    def __next__(self: Any) -> Any:
        wait = enter_next(self, loader_of)
        if wait is None:
            return take(self)
        got, batch = False, None
        try:
            batch = take(self)
            got = True
        finally:
            leave_next(wait, batch, got)
            if after is not None:
                after(self, wait, got)
        if looks:
            show(batch)
        return batch

    return __next__
