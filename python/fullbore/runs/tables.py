"""Tables of the program, column by column: NumPy arrays where NumPy is installed, else lists."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Callable


def column(values: Sequence[Any]) -> Any:
    try:
        import numpy
    except ImportError:
        return list(values)
    return numpy.array(values)


def number(text: str) -> float:
    """NaN for what was not recorded."""
    return float(text) if text else math.nan


def rows_of(text: str) -> Iterator[dict[str, str]]:
    return csv.DictReader(text.splitlines())


def frame(columns: Mapping[str, Any]) -> Any:
    import pandas

    return pandas.DataFrame(dict(columns))


class Table(Mapping[str, Any]):
    """Columns by name, all of one length: NumPy arrays, or lists where there is no NumPy."""

    def __init__(self, columns: Mapping[str, Any]) -> None:
        self._columns = dict(columns)

    @classmethod
    def of(cls, rows: Sequence[Mapping[str, str]], kinds: Mapping[str, Callable[[str], Any]]) -> Table:
        return cls({name: column([kind(row[name]) for row in rows]) for name, kind in kinds.items()})

    def __getitem__(self, name: str) -> Any:
        return self._columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def __repr__(self) -> str:
        rows = len(next(iter(self._columns.values()), ()))
        return f"<{rows} rows of {', '.join(self)}>"

    def to_pandas(self) -> Any:
        """A pandas.DataFrame. Raises ImportError where pandas is not installed."""
        return frame(self)
