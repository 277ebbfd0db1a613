"""`map=`: a Python function as the user stage, in the loader's threads or in separate processes.

The function gets a Sample, a dictionary of numpy views of one row of the batch, and changes them in place, or returns
a dictionary (or a tuple, in the order of the fields) of replacements. Replacements need the same shapes, because the
batch is already allocated. A view that outlives the call keeps its batch's memory alive. An exception marks the sample
as bad. sample.py has how a row is handed over, map_processes.py the processes.
"""

from __future__ import annotations

import pickle
from typing import Any

from .errors import argument
from .sample import Function, Stage, as_views, changed, describe, store


def in_threads(function: Function) -> Stage:
    """The stage as the engine calls it: returns None, or why the sample is bad."""

    def stage(fields: list, ident: int, epoch: int, seed: int) -> str | None:
        try:
            views = as_views(fields)
            store(views, changed(function, views, ident, epoch, seed))
            return None
        except BaseException as error:
            return describe(error)

    return stage


def make(function: Function, processes: int) -> tuple[Stage, Any]:
    """The stage, and the pool of processes it needs, if any."""
    if processes <= 0:
        return in_threads(function), None
    from .map_processes import Pool  # imports multiprocessing, which nothing else here needs

    try:
        pool = Pool(function, processes)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise argument(
            f"map={function!r} cannot be sent to another process: {error}", "define it at the top level of a module"
        ) from None
    return pool.stage, pool
