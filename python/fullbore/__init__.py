"""Fullbore finds the narrowest pipe of a training run; `fullbore.data` is the cure for the commonest.

The program itself is `fullbore` on the command line. `fullbore.watch(loader)` and `fullbore.step()` mark loops that it
cannot see by itself; `fullbore.read(run)` gives what was recorded, as arrays; `fullbore.record(name)` records a part of
a script, and `%load_ext fullbore` a cell of a notebook (docs/python.md). `fullbore.hook` is what the program puts into
a training process, and is never imported by the name of this package.
"""

from __future__ import annotations

import importlib
from typing import Any

from .loops import step, watch

__all__ = ["FullboreError", "read", "record", "step", "watch"]

_LATER = {"FullboreError": "runs.program", "read": "runs.reading", "record": "runs.recording"}


def __getattr__(name: str) -> Any:
    """A script that only marks its loops pays for nothing else."""
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(f".{_LATER[name]}", __name__), name)
    return value


def load_ipython_extension(shell: Any) -> None:
    """`%load_ext fullbore`"""
    from . import notebook

    notebook.load(shell)
