"""One row of a batch for a map function: what the function gets, and how its result gets back into the batch."""

from __future__ import annotations

import os
import traceback
from typing import Any, Callable

Function = Callable[..., Any]
Stage = Callable[[list, int, int, int], "str | None"]


class Sample(dict):
    """One row: field name -> numpy view (a label is a 0-dimensional array), str or bytes.

    id: of the sample in the source. seed: the same for the same sample and epoch, on any thread:
    numpy.random.default_rng(sample.seed) draws the same numbers again after a resume.
    """

    def __init__(self, fields: dict[str, Any], ident: int, epoch: int, seed: int) -> None:
        super().__init__(fields)
        self.id, self.epoch, self.seed = ident, epoch, seed


def as_views(fields: list) -> dict[str, Any]:
    import numpy

    return {name: value if isinstance(value, (str, bytes)) else numpy.asarray(value) for name, value in fields}


def changed(function: Function, views: dict[str, Any], ident: int, epoch: int, seed: int) -> dict[str, Any]:
    """Calls the function; returns the fields that it replaced with something other than the given view."""
    sample = Sample(views, ident, epoch, seed)
    result = function(sample)
    if result is None:
        result = sample
    elif not isinstance(result, dict):
        result = dict(zip(views, result if isinstance(result, (tuple, list)) else (result,)))
    unknown = [name for name in result if name not in views]
    if unknown:
        raise KeyError(f"map returned an unknown field {unknown[0]!r}; the sample has {', '.join(views)}")
    return {name: value for name, value in result.items() if value is not views[name]}


def store(views: dict[str, Any], values: dict[str, Any]) -> None:
    """Copies the returned values into the row."""
    import numpy

    for name, value in values.items():
        view = views[name]
        if isinstance(view, (str, bytes)):
            if value != view:
                raise TypeError(f"map changed the text of {name!r}; only numbers can be changed in place")
            continue
        array = numpy.asarray(value)
        if array.shape != view.shape:
            raise ValueError(f"map returned {name!r} with shape {array.shape}; the batch has room for {view.shape}")
        # A Python number is cast to the type of the row.
        numpy.copyto(view, array, casting="unsafe" if isinstance(value, (int, float)) else "same_kind")


def describe(error: BaseException) -> str:
    """The last line of the traceback, and its place in the script."""
    frames = traceback.extract_tb(error.__traceback__)
    last = traceback.format_exception_only(type(error), error)[-1].strip()
    own = [frame for frame in frames if os.path.dirname(frame.filename) != os.path.dirname(__file__)]
    where = f" ({own[-1].filename}:{own[-1].lineno})" if own else ""
    return f"map: {last}{where}"
