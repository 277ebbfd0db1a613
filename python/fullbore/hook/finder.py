"""Patches modules right after the script has imported them; imports none of them itself.

The loader of a watched module gets an `exec_module` of its own for the one time it is used, so that the module, its
spec and its loader look afterwards as they would have looked without us.
"""

from __future__ import annotations

import functools
import importlib
import os
import sys
from typing import Any, Callable

from .core.interrupts import is_the_scripts
from .core.library import standard_library
from .core.runtime import hook

Patch = Callable[[Any], None]

# Which module's import attaches which part of the hook: the folder's or file's `attach(module, when_imported)`.
PARTS = {
    "torch": "torch",
    "tensorflow": "tensorflow",
    "keras": "keras",
    "jax": "jax",
    "fullbore.loops": "own.marks",
}
# What trains nothing: it is only asked which run it has open, and what the script logs.
TRACKERS = {"mlflow": "own.mlflow"}
TRACKERS.update(
    dict.fromkeys(
        (
            "torch.utils.tensorboard.writer",
            "tensorboardX.writer",
            "mlflow.tracking.client",
            "wandb.sdk.wandb_run",
            "transformers.trainer",
            "lightning.fabric.loggers.csv_logs",
            "lightning_fabric.loggers.csv_logs",
        ),
        "own.loggers",
    )
)
# And what applies settings to it, where there are any.
STEERED = {"torch": "steer.torch", "keras": "steer.keras"}


class Finder:
    """Stands first in sys.meta_path and answers for watched names only."""

    def __init__(self) -> None:
        self.watched: dict[str, Patch] = {name: functools.partial(self.attach_part, name) for name in PARTS}
        self.watched.update({name: functools.partial(see_tracker, name) for name in TRACKERS})

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any | None:
        patch = self.watched.pop(name, None)  # removed, so that we do not answer again while other finders search
        if patch is None:
            return None
        try:
            for finder in sys.meta_path:
                if finder is self or not hasattr(finder, "find_spec"):
                    continue
                spec = finder.find_spec(name, path, target)
                if spec is not None:
                    patch_when_executed(spec.loader, functools.partial(self.patch, name))
                    return spec
            return None
        finally:
            self.watched[name] = patch  # looking for a module (importlib.util.find_spec) is not importing it

    def patch(self, name: str, module: Any) -> None:
        patch = self.watched.pop(name, None)
        if patch is not None:
            patch(module)

    def attach(self) -> None:
        """For what was imported before us, or while nothing was recorded."""
        for name in tuple(self.watched):
            if name in sys.modules:
                self.patch(name, sys.modules[name])

    def attach_part(self, name: str, module: Any) -> None:
        load(PARTS[name]).attach(module, self.when_imported)
        if name in STEERED and is_steered():
            load(STEERED[name]).attach(module, self.when_imported)
        attach_process()

    def when_imported(self, name: str, patch: Patch) -> None:
        """For one module's import, several may ask: they patch in that order."""
        module = sys.modules.get(name)
        if module is not None:
            patch(module)
            return
        before = self.watched.get(name)
        self.watched[name] = patch if before is None else functools.partial(in_order, before, patch)


def in_order(first: Patch, second: Patch, module: Any) -> None:
    first(module)
    second(module)


def see_tracker(name: str, module: Any) -> None:
    run_patch(load(TRACKERS[name]).attach, module)


def load(name: str) -> Any:
    with standard_library:
        return importlib.import_module(f".{name}", __package__)


def is_steered() -> bool:
    settings = load("core.settings").settings
    return settings.asked or any(os.environ.get(name) for name in ("FULLBORE_TRIAL", "FULLBORE_AUTOPILOT"))


def patch_when_executed(loader: Any, patch: Patch) -> None:
    execute = loader.exec_module

    def exec_module(module: Any) -> None:
        del loader.exec_module
        execute(module)
        run_patch(patch, module)

    try:
        loader.exec_module = exec_module
    except AttributeError as error:
        if is_the_scripts(error):
            raise
        hook.fail(f"patching {getattr(loader, 'name', 'a module')}", error)


def run_patch(patch: Patch, module: Any) -> None:
    if not hook.on:
        return
    try:
        patch(module)
    except Exception as error:
        if not hook.fail(f"patching {module.__name__}", error):
            raise


@functools.cache  # once, whichever library comes first
def attach_process() -> None:
    load("sampling.lines").attach()
    load("sampling.workers").attach()
    load("core.process").attach()
    load("own.printed").attach()


FINDER = Finder()


def make() -> Finder:
    sys.meta_path.insert(0, FINDER)
    for name in TRACKERS:  # often imported before the framework that made us come
        if name in sys.modules:
            FINDER.patch(name, sys.modules[name])
    return FINDER
