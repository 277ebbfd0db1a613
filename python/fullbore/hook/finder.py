"""Patches modules right after the script has imported them; imports none of them itself.

The loader of a watched module gets an `exec_module` of its own for the one time it is used, so that the module, its
spec and its loader look afterwards as they would have looked without us.
"""

from __future__ import annotations

import functools
import os
import sys
from typing import Any, Callable

from . import runtime
from .runtime import hook

Patch = Callable[[Any], None]


class Finder:
    """Stands first in sys.meta_path and answers for watched names only."""

    def __init__(self) -> None:
        self.watched: dict[str, Patch] = {"torch": attach_torch, "fullbore.loops": attach_marks}

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
        """For a torch that was imported before us."""
        self.watched.pop("torch", None)
        attach_torch(sys.modules["torch"])

    def when_imported(self, name: str, patch: Patch) -> None:
        module = sys.modules.get(name)
        if module is None:
            self.watched[name] = patch
        else:
            patch(module)


def patch_when_executed(loader: Any, patch: Patch) -> None:
    execute = loader.exec_module

    def exec_module(module: Any) -> None:
        del loader.exec_module
        execute(module)
        run_patch(patch, module)

    try:
        loader.exec_module = exec_module
    except AttributeError as error:
        hook.fail("import of torch", error)


def run_patch(patch: Patch, module: Any) -> None:
    if not hook.on:
        return
    try:
        patch(module)
    except Exception as error:
        hook.fail(f"patching {module.__name__}", error)


@functools.cache  # once, whichever library comes first
def attach_process() -> None:
    from . import lines, others

    lines.attach()
    others.attach_process()


def attach_marks(loops: Any) -> None:
    """The package fullbore is imported: the script may mark its loops with it."""
    from . import marks

    marks.attach(loops)
    attach_process()


def attach_torch(torch: Any) -> None:
    """Torch is imported: introduces the process and patches torch's modules."""
    from . import backward, collectives, device, facts, fast_cost, forward, loader, others, stages, steps, worker

    if not runtime.is_helper_process():
        hook.open()
    places = (
        ("torch.utils.data.dataloader", loader.attach),
        ("torch.utils.data._utils.fetch", worker.attach),
        ("fullbore.data.loader", stages.attach),
        ("torch.optim.optimizer", steps.attach),
        ("torch.nn", forward.attach),
        ("torch.autograd", backward.attach),
        ("torch.distributed", collectives.attach),
        ("torch.nn.parallel.distributed", collectives.attach_data_parallel),
        ("torch.cuda", device.attach),
        ("torch.serialization", others.attach_checkpoints),
        ("safetensors.torch", others.attach_safetensors),
    )
    facts.at_import(torch)
    fast_cost.attach()
    for name, patch in places:
        FINDER.when_imported(name, patch)
    attach_process()
    if os.environ.get("FULLBORE_DRAIN"):
        from . import drain

        drain.attach()


FINDER = Finder()


def make() -> Finder:
    sys.meta_path.insert(0, FINDER)
    return FINDER
