"""What a DataLoader is made with: its arguments are rewritten when the script makes it.

A library that makes a loader again from the script's (accelerate, Lightning) gives it a batch sampler or subclasses
DataLoader; what became of the settings is what became of them in the script's own. The outcome that is stated is that
of the loader that feeds the steps.
"""

from __future__ import annotations

import functools
import inspect
import sys
import weakref
from typing import Any

from ..core import steps
from ..core.interrupts import is_the_scripts
from ..core.runtime import guarded
from ..core.settings import settings
from ..torch.loader import made_by_library

ONLY_WITH_WORKERS = ("prefetch_factor", "persistent_workers", "multiprocessing_context")

_outcomes: list[tuple[Any, dict[str, str]]] = []  # (weak reference to a loader, what became of the settings)
Arguments = dict[str, Any]


def attach(module: Any) -> None:
    """Patches torch.utils.data.dataloader."""
    DataLoader = module.DataLoader
    original = DataLoader.__init__
    signature = inspect.signature(original)

    @functools.wraps(original)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        try:
            bound = signature.bind(self, *args, **kwargs)
        except TypeError as error:
            if is_the_scripts(error):
                raise
            original(self, *args, **kwargs)  # raises what it would have raised
            return
        outcomes = rewrite(bound.arguments) or {}
        original(*bound.args, **bound.kwargs)
        remember(self, outcomes)

    DataLoader.__init__ = __init__
    steps.after_first_steps.append(after_step)


@guarded
def rewrite(arguments: Arguments) -> dict[str, str]:
    """Changes the arguments; returns the outcome of each setting: "" if applied, or why it was refused."""
    if made_by_library() == "keras":  # which makes the batches of arrays itself
        return {}
    outcomes = {
        "num_workers": set_workers(arguments),
        "batch_size": set_batch_size(arguments),
        "pin_memory": set_pinning(arguments),
    }
    if arguments.get("num_workers"):
        for name in ("prefetch_factor", "persistent_workers"):
            outcomes[name] = set_plainly(arguments, name)
    else:
        for name in ONLY_WITH_WORKERS:
            arguments.pop(name, None)
            outcomes[name] = "it needs loader workers, and there are none"
    return {name: outcome for name, outcome in outcomes.items() if name in settings.wanted}


def set_plainly(arguments: Arguments, name: str) -> str:
    wanted = settings.get(name)
    if wanted is not None:
        arguments[name] = wanted
    return ""


def set_pinning(arguments: Arguments) -> str:
    torch = sys.modules["torch"]
    if settings.get("pin_memory") and not (torch.cuda.is_available() or has_accelerator(torch)):
        return "there is no device to pin memory for"
    return set_plainly(arguments, "pin_memory")


def has_accelerator(torch: Any) -> bool:
    accelerator = getattr(torch, "accelerator", None)  # from 2.6 on
    return accelerator is not None and bool(accelerator.is_available())


def set_workers(arguments: Arguments) -> str:
    wanted = settings.get("num_workers")
    if wanted is None:
        return ""
    if wanted > 1 and arguments.get("num_workers", 0) < 2 and repeats_in_workers(arguments["dataset"]):
        return "each worker would yield all samples of this iterable dataset, which does not call get_worker_info()"
    arguments["num_workers"] = wanted
    return ""


def repeats_in_workers(dataset: Any) -> bool:
    """Whether this is an iterable dataset without any sign that its workers share out the samples."""
    data = sys.modules["torch.utils.data"]
    if not isinstance(dataset, data.IterableDataset):
        return False
    code = getattr(type(dataset).__iter__, "__code__", None)
    return code is not None and "get_worker_info" not in code.co_names


def set_batch_size(arguments: Arguments) -> str:
    wanted = settings.get("batch_size")
    if wanted is None:
        return ""
    if arguments.get("batch_sampler") is not None:
        return "a batch_sampler makes the batches"
    if arguments.get("batch_size", 1) is None:
        return "the DataLoader makes no batches: batch_size=None"
    arguments["batch_size"] = wanted
    return ""


@guarded
def remember(loader: Any, outcomes: dict[str, str]) -> None:
    if made_by_library():
        for reference, known in _outcomes:
            other = reference()
            if other is not None and other.dataset is loader.dataset:
                outcomes = known
                break
    loader.__dict__["_fullbore_outcomes"] = outcomes
    _outcomes.insert(0, (weakref.ref(loader), outcomes))
    del _outcomes[32:]


def after_step(optimizer: Any, thread: Any, end: int) -> None:
    if thread.fed_by is not None:
        settings.say(thread.fed_by.outcomes)
