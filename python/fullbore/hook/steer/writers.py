"""Redirects what writes files by other ways than Python's `open` and `os`, as outputs.py does with these."""

from __future__ import annotations

import functools
import os
import sys
from typing import Any, Callable, NamedTuple

from .view import Trial

Patch = Callable[[Any], None]


class Way(NamedTuple):
    """A function that takes a path and hands it to code that is not Python's."""

    module: str
    function: str  # or Class.method
    place: int  # of the path among the arguments
    keyword: str
    keeps: bool = False  # what is in the file so far counts
    reads: bool = False
    mode: int = 0  # the place of the mode, by which a file may be opened for reading only; 0: there is none


WAYS = (
    Way("torch.serialization", "save", 1, "f"),
    Way("torch.serialization", "load", 0, "f", reads=True),
    Way("torch.jit", "save", 1, "f"),
    Way("torch.jit", "load", 0, "f", reads=True),
    Way("torch.autograd.profiler", "profile.export_chrome_trace", 1, "path"),
    Way("safetensors.torch", "save_file", 1, "filename"),
    Way("safetensors.torch", "load_file", 0, "filename", reads=True),
    Way("safetensors.numpy", "save_file", 1, "filename"),
    Way("safetensors.numpy", "load_file", 0, "filename", reads=True),
    Way("h5py", "File.__init__", 1, "name", keeps=True, mode=2),
    Way("sqlite3", "connect", 0, "database", keeps=True),
    Way("torch.utils.tensorboard.writer", "FileWriter.__init__", 1, "log_dir"),
    Way("tensorboardX.writer", "FileWriter.__init__", 1, "logdir"),
)


def attach(trial: Trial, when_imported: Callable[[str, Patch], None]) -> None:
    for way in WAYS:
        when_imported(way.module, functools.partial(lead, trial, way))


def lead(trial: Trial, way: Way, module: Any) -> None:
    owner, _, name = way.function.rpartition(".")
    place = getattr(module, owner) if owner else module
    original = getattr(place, name, None)
    if original is None:
        return

    @functools.wraps(original)
    def led(*args: Any, **kwargs: Any) -> Any:
        reads = way.reads or only_reads(way, args, kwargs)
        if way.keyword in kwargs:
            kwargs[way.keyword] = real_path(trial, way, kwargs[way.keyword], reads)
        elif len(args) > way.place:
            args = (*args[: way.place], real_path(trial, way, args[way.place], reads), *args[way.place + 1 :])
        return original(*args, **kwargs)

    setattr(place, name, led)
    torch = sys.modules.get("torch")
    if getattr(torch, name, None) is original:  # torch.serialization.save is torch.save, too
        setattr(torch, name, led)


def only_reads(way: Way, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether the mode says so: a file that is only read is not copied."""
    given = args[way.mode] if len(args) > way.mode else "r"
    return way.mode > 0 and kwargs.get("mode", given) == "r"


def real_path(trial: Trial, way: Way, path: Any, reads: bool) -> Any:
    if not isinstance(path, (str, bytes, os.PathLike)) or path in (":memory:", ""):
        return path  # a file object
    return trial.to_read(path) if reads else trial.to_write(path, keep=way.keeps)
