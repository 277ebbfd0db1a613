"""Which elements of a matrix of integers, a row for each sample, are padding; and what was seen of some batches."""

from __future__ import annotations

from typing import Any, NamedTuple

MOST_LENGTHS = 4096
MOST_WIDTHS = 16
POINTS = 32  # between the quantiles of the lengths


def lengths(useful: Any) -> list[int]:
    """How many elements of each row are of use."""
    return [int(length) for length in useful.sum(1).tolist()]


def filler(ids: Any) -> int | None:
    """The id that fills the rows to one length: it ends rows, or begins them, so many times as the row is short of it,
    and stands nowhere else. Rows that are all as short, or by one, have an end of their own rather."""
    for edge in (ids[:, -1], ids[:, 0]):
        value = int(edge.mode().values)
        if fills_ends(ids == value):
            counts = {int(count) for count in (ids == value).sum(1).tolist()}
            if len(counts) > 1 and max(counts) > 1:
                return value
    return None


def fills_ends(filled: Any) -> bool:
    """Whether all that is filled are ends of rows, or all are beginnings."""
    before, after = filled[:, :-1], filled[:, 1:]
    return bool((before <= after).all()) or bool((before >= after).all())


def is_mask_of(mask: Any, ids: Any) -> bool:
    """Whether it leaves out the ends of rows, and nothing but one id: else it may mean the contrary, or more."""
    left_out = ids[mask == 0]
    plain = bool(((mask == 0) | (mask == 1)).all()) and fills_ends(mask == 0)
    return plain and (left_out.numel() == 0 or bool((left_out == left_out[0]).all()))


def quantiles(values: list[int], points: int) -> list[int]:
    """The smallest, the largest, and those between at equal parts."""
    ordered = sorted(values)
    last = len(ordered) - 1
    return [ordered[round(last * point / points)] for point in range(points + 1)]


class Seen(NamedTuple):
    """One batch."""

    loader: Any  # its id; None where the model was called with the batch
    rows: int
    width: int
    lengths: list[int]  # useful tokens of each row; none where nothing tells which are padding
    told_by: str  # empty then


class Sizes:
    """Of the rows of batches: their tokens, and as attention sees them, the squares of their widths."""

    def __init__(self) -> None:
        self.tokens = self.squares = 0

    def add(self, rows: int, width: int) -> None:
        self.tokens += rows * width
        self.squares += rows * width * width


class Counted:
    """All batches that were looked at."""

    def __init__(self) -> None:
        self.batches = self.rows = self.useful = 0
        self.computed, self.longest = Sizes(), Sizes()
        self.lengths: list[int] = []
        self.widths: set[int] = set()
        self.told_by = ""

    def add(self, seen: Seen) -> None:
        """All count if nothing tells which of their tokens are padding, else those of which something does."""
        if seen.told_by and not self.told_by:
            self.__init__()  # type: ignore[misc]
        if seen.told_by or not self.told_by:
            self.add_size(seen)
        if seen.told_by:
            self.add_lengths(seen)

    def add_size(self, seen: Seen) -> None:
        self.batches += 1
        self.rows += seen.rows
        self.computed.add(seen.rows, seen.width)
        if len(self.widths) < MOST_WIDTHS:
            self.widths.add(seen.width)

    def add_lengths(self, seen: Seen) -> None:
        self.told_by = seen.told_by
        self.useful += sum(seen.lengths)
        self.longest.add(seen.rows, max(seen.lengths))
        if len(self.lengths) + seen.rows <= MOST_LENGTHS or not self.lengths:
            self.lengths += seen.lengths[:MOST_LENGTHS]

    def is_padded(self) -> bool:
        return bool(self.told_by) and self.useful < self.computed.tokens

    def forget_lengths(self) -> None:
        self.told_by = ""

    def about(self) -> dict[str, Any]:
        sizes = {
            "batches": self.batches,
            "rows": self.rows,
            "computed": [self.computed.tokens, self.computed.squares],
            "widths": len(self.widths),
        }
        return {**sizes, **self.about_lengths()} if self.told_by else sizes

    def about_lengths(self) -> dict[str, Any]:
        return {
            "useful": self.useful,
            "longest": [self.longest.tokens, self.longest.squares],
            "lengths": quantiles(self.lengths, POINTS),
            "told_by": self.told_by,
        }
