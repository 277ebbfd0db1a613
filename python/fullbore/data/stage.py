"""`map=`: a Python function as the user's own stage, in the loader's threads or in processes of its own.

The function gets a Sample, a dictionary of numpy views of one row of the batch, and changes them in place, or returns
a dictionary (or tuple, in the order of the fields) of what takes their places: the same shapes, for the batch is
there already. A view that is kept keeps its batch's memory. An exception makes the sample a bad one. How a row is
handed over is in sample.py, the processes are in map_processes.py.
"""

from __future__ import annotations

import pickle
from typing import Any

from .errors import argument
from .sample import Function, Stage, as_views, changed, describe, store


def in_threads(function: Function) -> Stage:
    """For the engine: gives None, or why the sample is a bad one."""

    def stage(fields: list, ident: int, epoch: int, seed: int) -> str | None:
        try:
            views = as_views(fields)
            store(views, changed(function, views, ident, epoch, seed))
            return None
        except BaseException as error:
            return describe(error)

    return stage


def to_bytes(function: Function, processes: int) -> bytes:
    """For the loader's own process: with what makes functions of the script's main module importable there."""
    from multiprocessing import spawn

    preparation = spawn.get_preparation_data("fullbore.data")
    preparation.pop("authkey", None)  # multiprocessing's own, which it refuses to have pickled
    return pickle.dumps((preparation, processes, pickle.dumps(function)))


def from_bytes(data: bytes) -> Stage:
    from multiprocessing import spawn

    preparation, processes, function = pickle.loads(data)
    spawn.prepare(preparation)
    return make(pickle.loads(function), processes)[0]


def make(function: Function, processes: int) -> tuple[Stage, Any]:
    """The stage, and the pool of processes it needs, if any."""
    if processes <= 0:
        return in_threads(function), None
    from .map_processes import Pool  # with multiprocessing, which nobody else here needs

    try:
        pool = Pool(function, processes)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise argument(
            f"map={function!r} cannot be sent to another process: {error}", "define it at the top level of a module"
        ) from None
    return pool.stage, pool
