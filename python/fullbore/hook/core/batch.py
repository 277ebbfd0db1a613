"""How many samples a batch holds, and how large it is.

A batch is whatever a collate function made: a tensor, tuples and dictionaries of tensors, lists of images of different
sizes. The leading dimension of its first tensor is usually, but not always, the number of samples. So the first
batch is searched for a place that shows the loader's batch size, and later batches, the short last one above
all, are read at that place.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from .interrupts import is_the_scripts

MAX_DEPTH = 5
MAX_ITEMS = 8  # looked at in a list or dictionary

Path = tuple[Any, ...]


def leading(value: Any) -> int | None:
    """The leading dimension of a tensor or array, else None."""
    shape = getattr(value, "shape", None)
    try:
        return int(shape[0]) if shape is not None and len(shape) else None
    except (TypeError, ValueError, KeyError, IndexError) as error:
        if is_the_scripts(error):
            raise
        return None


def children(value: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(value, (list, tuple)):
        yield from zip(range(MAX_ITEMS), value)
    elif hasattr(value, "keys") and hasattr(value, "__getitem__"):
        for _, key in zip(range(MAX_ITEMS), value.keys()):
            yield key, value[key]


def sizes(value: Any, path: Path = ()) -> Iterator[tuple[int, Path, bool]]:
    """All sizes in a batch, in order of nesting, as (size, path, whether it is a leading dimension)."""
    size = leading(value)
    if size is not None:
        yield size, path, True
        return
    if isinstance(value, (list, tuple)) and path:
        yield len(value), path, False
    if len(path) < MAX_DEPTH:
        for key, child in children(value):
            yield from sizes(child, (*path, key))


def known_sizes(batch: Any) -> list[tuple[int, Path, bool]]:
    """Those before what cannot be looked through: a batch's methods may be the script's."""
    found = []
    try:
        for size in sizes(batch):
            found.append(size)
    except Exception as error:
        if is_the_scripts(error):
            raise
    return found


def at(value: Any, path: Path) -> Any:
    for key in path:
        value = value[key]
    return value


def shape_at(batch: Any, path: Path) -> list[int]:
    try:
        return [int(size) for size in at(batch, path).shape]
    except Exception as error:
        if is_the_scripts(error):
            raise
        return []


class BatchCounter:
    """Counts the samples of one loader's batches."""

    __slots__ = ("batch_size", "_path", "is_leading", "_has_tokens", "shape")

    def __init__(self, batch_size: int | None) -> None:
        self.batch_size = batch_size
        self._path: Path | None = None
        self.is_leading = True  # the number of samples is a leading dimension, not a length
        self._has_tokens = False
        self.shape: list[int] | None = None  # of the tensor that counts, in the first batch

    @property
    def simple_place(self) -> Path | None:
        """Where the samples are counted in every batch from now on; None until that is known, and for tokens."""
        return None if self._has_tokens else self._path

    def count(self, batch: Any) -> tuple[int, int]:
        """(samples, -1 if unknown; elements of the tensor that counts them, or tokens where there are some, 0 if
        unknown)."""
        if self._path is None:
            self._learn(batch)
        try:
            value = at(batch, self._path or ())
            if self.is_leading:
                shape = value.shape
                samples, elements = int(shape[0]), int(math.prod(shape))
            else:
                samples, elements = len(value), 0
        except Exception as error:
            if is_the_scripts(error):
                raise
            samples, elements = self.batch_size or -1, 0
        return samples, tokens(batch) if self._has_tokens else elements

    def _learn(self, batch: Any) -> None:
        found = known_sizes(batch)
        fitting = [entry for entry in found if entry[0] == self.batch_size]
        tensors = [entry for entry in found if entry[2]]
        # As many boxes as images, by chance: the images have more dimensions.
        shown = sorted((e for e in fitting if e[2]), key=lambda entry: -len(shape_at(batch, entry[1])))
        best = next(iter(shown or fitting or tensors), None)
        self._path = ()
        self._has_tokens = tokens(batch) > 0
        if best is not None:
            _, self._path, self.is_leading = best
            if self.is_leading:
                self.shape = shape_at(batch, self._path) or None


def tokens(batch: Any) -> int:
    """The number of elements of `input_ids`, for batches that have them."""
    try:
        ids = batch["input_ids"] if hasattr(batch, "keys") else None
        return 0 if ids is None else int(ids.numel())
    except Exception as error:
        if is_the_scripts(error):
            raise
        return 0
