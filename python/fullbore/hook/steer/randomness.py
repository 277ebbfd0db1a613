"""Whether loading with another number of workers gives the same batches, bit for bit.

A worker's random numbers come from a seed and its number, and those drawn inline from the training's own generators.
So the samples are the same in any number of workers only if making them draws none. That is seen where the training
makes them anyway, inline or in its workers: nothing is read a second time, because a dataset may write a log or count
its samples, and no batch is copied or compared.
"""

from __future__ import annotations

import hashlib
import mmap
import pickle
import random
import sys
from types import CellType, FunctionType
from typing import Any

from ..core.frames import is_user_file
from ..core.interrupts import is_the_scripts, is_users_class

DRAWS = "making a sample draws random numbers, which depend on the number of workers"
MOST_PARTS, MOST_ITEMS = 500, 64
EMPTY = CellType()  # a variable that is not set yet
_seen: list[mmap.mmap] = []  # shared with the workers that are forked: 1 once one of them drew a number


def watch_workers() -> None:
    """Watches the workers that this process forks from now on."""
    _seen[:] = [mmap.mmap(-1, 1)]


def note_in_worker() -> None:
    for flag in _seen:
        flag[0] = 1


def was_drawn_in_worker() -> bool:
    return any(flag[0] for flag in _seen)


def state(dataset: Any = None) -> tuple[Any, ...]:
    """The states of the generators that a dataset may draw from: the libraries', and those among its attributes."""
    numpy = sys.modules.get("numpy")
    drawn = numpy.random.get_state() if numpy is not None else ("", b"", 0)
    own = tuple(state_of(part) for part in parts(dataset)) if dataset is not None else ()
    return (
        sys.modules["torch"].get_rng_state().numpy().tobytes(),
        hash(random.getstate()),
        bytes(drawn[1]),
        drawn[2],
        own,
    )


def state_of(part: Any) -> Any:
    """The state of a generator, None for anything else."""
    if type(part) is random.Random:
        return hash(part.getstate())
    numpy, torch = sys.modules.get("numpy"), sys.modules["torch"]
    if type(part) is torch.Generator:
        return part.get_state().numpy().tobytes()
    if numpy is not None and type(part) in (numpy.random.Generator, numpy.random.RandomState):
        bits = part.bit_generator if type(part) is numpy.random.Generator else part._bit_generator
        return hashlib.sha1(pickle.dumps(bits.state)).digest()
    return None


def parts(*roots: Any) -> list[Any]:
    """These objects and what they consist of, without running code of theirs: attributes, items, what a method is bound
    to, and what the script's own functions reach by name."""
    found: list[Any] = []
    todo, met = list(roots), set()
    while todo and len(found) < MOST_PARTS:
        part = todo.pop(0)
        if id(part) in met or isinstance(part, (str, bytes, int, float, type(None), type, type(sys))):
            continue
        met.add(id(part))
        found.append(part)
        if type(part) in (list, tuple, set, frozenset):
            todo.extend(item for _, item in zip(range(MOST_ITEMS), part))
        elif type(part) is dict:
            todo.extend(item for _, item in zip(range(MOST_ITEMS), list(part.values())))
        elif type(part).__name__ == "partial":
            todo.extend((part.func, part.args, part.keywords))
        elif hasattr(type(part), "__self__"):  # a method
            todo.extend((part.__self__, getattr(part, "__func__", None)))
        elif isinstance(part, FunctionType):
            todo.extend(reached_by(part))
        else:
            todo.extend(methods_of(part))
            try:
                todo.extend(object.__getattribute__(part, "__dict__").values())
            except AttributeError as error:
                if is_the_scripts(error):
                    raise
    return found


def methods_of(part: Any) -> list[Any]:
    """Its methods that are the script's own code."""
    classes = [cls for cls in type(part).__mro__ if is_users_class(cls)]
    return [method for cls in classes for method in vars(cls).values() if isinstance(method, FunctionType)]


def reached_by(function: FunctionType) -> list[Any]:
    if not is_user_file(function.__code__.co_filename):
        return []
    cells = [cell.cell_contents for cell in function.__closure__ or () if cell != EMPTY]
    known = function.__globals__
    return [*cells, *(known[name] for name in function.__code__.co_names if name in known)]


def users_code(*roots: Any) -> str:
    """The name of a part that is the user's own code, "" where all of it is a library's."""
    found = parts(*roots)
    for part in found:
        if isinstance(part, FunctionType):
            if is_user_file(part.__code__.co_filename):
                return part.__name__
            continue
        for cls in type(part).__mro__:
            if is_users_class(cls):
                return cls.__name__
    return "it" if len(found) >= MOST_PARTS else ""
