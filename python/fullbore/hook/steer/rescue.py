"""A loader's iterator whose workers were not the script's choice: when one of them dies, the epoch goes on without.

The batches that were not delivered yet are made in the training process, in the same order: none is lost or repeated.
"""

from __future__ import annotations

import collections
import functools
import time
from typing import Any, Callable

from ..core.interrupts import is_the_scripts

Lost = Callable[[str], None]
LOOKS, PAUSE_S = 20, 0.05

_noting: list[collections.deque[Any] | None] = [None]  # where the indices of an iterator under construction are noted


def attach(module: Any) -> None:
    """Patches torch.utils.data.dataloader."""
    base, several = module._BaseDataLoaderIter, module._MultiProcessingDataLoaderIter
    next_index, next_data = base._next_index, several._next_data

    @functools.wraps(next_index)
    def _next_index(self: Any) -> Any:
        index = next_index(self)
        noted = self.__dict__.get("_fullbore_asked", _noting[0])
        if noted is not None:
            noted.append(index)
        return index

    @functools.wraps(next_data)
    def _next_data(self: Any) -> Any:
        rest = self.__dict__.get("_fullbore_rest")
        if rest is not None:
            return next(rest)
        if "_fullbore_asked" not in self.__dict__:
            return next_data(self)
        wanted = self._rcvd_idx
        try:
            batch = next_data(self)
        except (RuntimeError, OSError, EOFError) as error:
            if is_the_scripts(error):
                raise
            # Torch's own word for it, or what its queue says when the worker ended in the middle of a batch. An error
            # of the dataset's in a worker comes instead of a batch, which then counts as received.
            if self._rcvd_idx != wanted or not ended(self):
                raise
            self.__dict__["_fullbore_rest"] = rest = remaining(module, self)
            self.__dict__["_fullbore_lost"](f"a worker ended ({type(error).__name__})")
            return next(rest)
        forget_delivered(self)
        return batch

    base._next_index, several._next_data = _next_index, _next_data


def forget_delivered(iterator: Any) -> None:
    """A list of all indices of an epoch may be large."""
    asked = iterator._fullbore_asked
    for _ in range(iterator._rcvd_idx - iterator._fullbore_delivered):
        asked.popleft()
    iterator._fullbore_delivered = iterator._rcvd_idx


def ended(iterator: Any) -> bool:
    """Whether a worker ended that was not asked to: perhaps the kernel says so a moment later."""
    for _ in range(LOOKS):
        if any(not worker.is_alive() for worker in iterator._workers):
            return True
        time.sleep(PAUSE_S)
    return False


def guarded(make: Callable[[], Any], remove_pids: Callable[[int], None], lost: Lost) -> Any:
    """An iterator made by `make`, which goes on without its workers when one of them dies; `lost` hears of that."""
    _noting[0] = asked = collections.deque()
    try:
        iterator = make()
    finally:
        _noting[0] = None
    if hasattr(iterator, "_workers"):
        iterator.__dict__.update(_fullbore_asked=asked, _fullbore_delivered=0, _fullbore_lost=lost)
        # Else torch raises in the middle of whatever the training does just then, and not where a batch is taken.
        remove_pids(id(iterator))
        iterator._worker_pids_set = False
    return iterator


def remaining(module: Any, iterator: Any) -> Any:
    """The batches from the next one on, made here."""
    forget_delivered(iterator)
    asked = list(iterator._fullbore_asked)
    del iterator._fullbore_asked  # the rest is taken from the sampler here
    sampler = iterator._sampler_iter
    try:
        iterator._shutdown_workers()
    except Exception as error:  # what is left of them
        if is_the_scripts(error):
            raise
    fetcher = module._DatasetKind.create_fetcher(
        iterator._dataset_kind,
        iterator._dataset,
        iterator._auto_collation,
        iterator._collate_fn,
        iterator._drop_last,
    )

    def batches() -> Any:
        for indices in (*asked, *sampler):
            batch = fetcher.fetch(indices)
            if iterator._pin_memory:
                batch = module._utils.pin_memory.pin_memory(batch, iterator._pin_memory_device)
            yield batch

    return batches()
