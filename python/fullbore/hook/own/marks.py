"""`fullbore.watch(loader)` and `fullbore.step()`: loops of which no other part of the hook knows anything."""

from __future__ import annotations

import functools
import weakref
from typing import Any

from ..core.frames import caller_place
from ..core.runtime import clock, guarded, hook
from ..core.steps import count_step, state
from ..core.waits import Loader, introduced, timed_next

LIBRARY = "fullbore.watch"
SEEN_ANYWAY = ("torch.utils.data.", "fullbore.data.")  # loaders of which more is known than their waits


class Author:
    """Stands for the optimizer of a loop that says itself where its steps end."""


AUTHOR = Author()


@guarded
def is_seen_anyway(iterable: Any) -> bool:
    return any(kind.__module__.startswith(SEEN_ANYWAY) for kind in type(iterable).__mro__)


def about(source: Any) -> dict[str, Any]:
    return {"library": LIBRARY, "args": {"batch_size": None}, "dataset": type(source.iterable).__name__}


def loader_of(iterator: Any) -> Loader:
    return introduced(iterator.source, Loader, about)


@guarded
def note_place(source: Any) -> None:
    where = caller_place()
    if where is not None:
        source.__dict__["_fullbore_where"] = where


def mark_step() -> None:
    if not hook.on:
        return
    try:
        hook.open()
        if hook.is_worker:
            return
        if state.primary is None or state.primary() is not AUTHOR:
            state.primary = weakref.ref(AUTHOR)
        state.steps_of_others = 0
        end = clock()
        count_step(AUTHOR, hook.here(), end, end, marked=1)
    except Exception as error:
        if not hook.fail("fullbore.step()", error):
            raise


def attach(module: Any, when_imported: Any) -> None:
    """Patches fullbore.loops."""
    init, iterate = module.Watched.__init__, module.Watched.__iter__

    @functools.wraps(init)
    def __init__(self: Any, iterable: Any) -> None:
        init(self, iterable)
        note_place(self)

    @functools.wraps(iterate)
    def __iter__(self: Any) -> Any:
        return iter(self.iterable) if is_seen_anyway(self.iterable) else iterate(self)

    module.Watched.__init__ = __init__
    module.Watched.__iter__ = __iter__
    module.WatchedIterator.__next__ = timed_next(module.WatchedIterator.__next__, loader_of)
    module.note_step = mark_step
