"""Which elements of a matrix of integers, a row for each sample, are padding."""

from __future__ import annotations

from typing import Any


def lengths(useful: Any) -> list[int]:
    """How many elements of each row are of use."""
    return [int(length) for length in useful.sum(1).tolist()]


def filler(ids: Any) -> int | None:
    """The id that fills the rows to one length: it ends rows, or begins them, so many times as the row is short of it,
    and stands nowhere else. Rows that are all as short, or by one, have an end of their own rather."""
    for edge in (ids[:, -1], ids[:, 0]):
        value = int(edge.mode().values)
        if fills_ends(ids, value):
            counts = {int(count) for count in (ids == value).sum(1).tolist()}
            if len(counts) > 1 and max(counts) > 1:
                return value
    return None


def fills_ends(ids: Any, value: int) -> bool:
    """Whether all that it fills are ends of rows, or all are beginnings."""
    is_filled = ids == value
    counts = is_filled.sum(1)
    return any(bool((side.long().cumprod(1).sum(1) == counts).all()) for side in (is_filled, is_filled.flip(1)))


def quantiles(values: list[int], points: int) -> list[int]:
    """The smallest, the largest, and those between at equal parts."""
    ordered = sorted(values)
    last = len(ordered) - 1
    return [ordered[round(last * point / points)] for point in range(points + 1)]
