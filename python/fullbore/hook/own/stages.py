"""Loaders of fullbore.data: their waits, and what their stages did.

Their `next` is timed as a DataLoader's is. What happens inside is counted by the loader itself, in threads without
Python; its totals are copied into the channel about once a second, by the thread that takes the batches.
"""

from __future__ import annotations

import functools
import sys
from typing import Any

from ..core.frames import caller_place
from ..core.interrupts import is_the_scripts
from ..core.runtime import clock, guarded, hook
from ..core.waits import Loader, introduced, timed_next

PERIOD_NS = 1_000_000_000
FINE_FOR_NS = 600 * PERIOD_NS  # less often after ten minutes, so that a day's totals stay small
LATER_PERIOD_NS = 5 * PERIOD_NS
NEVER = sys.maxsize

OPTIONS = ("shuffle", "drop_last", "threads", "prefetch_batches", "nice", "map_processes", "device")
OPTIONS += ("dtype", "scaled_decode", "fast_dct", "memory_cache_bytes")


class StagedLoader(Loader):
    """A loader of fullbore.data."""

    __slots__ = ("since", "due")

    def __init__(self, ident: int, batch_size: int | None, source: Any) -> None:
        super().__init__(ident, batch_size, source)
        self.since = clock()
        self.due = 0  # when its totals are due next

    def ready(self, iterator: Any) -> int:
        count = iterator.__dict__.get("_fullbore_ready")
        return -1 if count is None else count()


def about(source: Any) -> dict[str, Any]:
    given = source.__dict__.get("_arguments", {})
    batch_size = given.get("batch_size")
    args = {name: given[name] for name in OPTIONS if name in given}
    return {
        "library": "fullbore.data",
        "args": {"batch_size": batch_size if isinstance(batch_size, int) else None, **args},
        "dataset": type(source).__name__,
        "dataset_len": source.samples,
    }


@guarded
def note_place(source: Any) -> None:
    where = caller_place()
    if where is not None:
        source.__dict__["_fullbore_where"] = where


def staged(source: Any) -> StagedLoader:
    """What stands for a loader of fullbore.data; introduces it when it is new."""
    return introduced(source, StagedLoader, about)  # type: ignore[return-value]


def loader_of(epoch: Any) -> StagedLoader:
    return staged(epoch._loader)


def after_next(epoch: Any, wait: Any, got: bool) -> None:
    """Reports the loader's totals when they are due, and at the end of an epoch. Never raises."""
    source, loader = epoch._loader, wait.epoch.loader
    if type(loader) is StagedLoader and hook.on and loader.due != NEVER and (wait.begin >= loader.due or not got):
        say_totals(source, loader)


def say_totals(source: Any, loader: StagedLoader) -> None:
    """A loader whose totals cannot be read is not asked again; its waits are still recorded."""
    begin = clock()
    try:
        hook.say("loader_stages", id=loader.id, **source.stats())
        loader.due = begin + (PERIOD_NS if begin - loader.since < FINE_FOR_NS else LATER_PERIOD_NS)
    except Exception as error:
        if is_the_scripts(error):
            raise
        loader.due = NEVER
        hook.say("message", severity="warning", text=f"the totals of the loader's stages cannot be read: {error}")
    hook.extra_ns += clock() - begin


def attach(module: Any) -> None:
    """Patches fullbore.data.loader."""
    init = module.Loader.__init__

    @functools.wraps(init)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        init(self, *args, **kwargs)
        note_place(self)

    module.Loader.__init__ = __init__
    module.Epoch.__next__ = timed_next(module.Epoch.__next__, loader_of, after_next)
