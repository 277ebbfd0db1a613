"""Marks for loops that `fullbore run` cannot see by itself: where batches come from, and where a step ends.

    import fullbore

    for batch in fullbore.watch(loader):
        state = update(state, batch)
        fullbore.step()

Outside `fullbore run` both do nothing, and cost a function call. Of a loop whose steps are those of a torch optimizer,
and whose batches come from a DataLoader, nothing needs to be marked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

Batch = TypeVar("Batch")


class Watched(Generic[Batch]):
    """Gives what another iterable gives, as often as that can be iterated."""

    def __init__(self, iterable: Iterable[Batch]) -> None:
        self.iterable = iterable

    def __len__(self) -> int:
        return len(self.iterable)  # type: ignore[arg-type]

    def __iter__(self) -> WatchedIterator[Batch]:
        return WatchedIterator(self)


class WatchedIterator(Iterator[Batch]):
    """One pass. The hook times its `__next__`."""

    def __init__(self, source: Watched[Batch]) -> None:
        self.source = source
        self.iterator = iter(source.iterable)

    def __next__(self) -> Batch:
        return next(self.iterator)


def watch(iterable: Iterable[Batch]) -> Watched[Batch]:
    """What the training iterates over: the waits for its batches are recorded, and their samples counted."""
    return Watched(iterable)


def step() -> None:
    """A step of the training has ended. Steps of torch optimizers do not count beside these."""
    note_step()


def note_step() -> None:
    """The hook puts its own here: a script may have taken `step` by its name long before."""
