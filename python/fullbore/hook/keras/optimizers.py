"""Keras's optimizers: where one steps in eager code, that is a step of a loop of the script's own. Inside `fit` it is
part of the training function's call, and in a compiled function there is nothing to time: it is told that it trains.
"""

from __future__ import annotations

import functools
import sys
from typing import Any

from ..core.frameworks import introduce
from ..core.runtime import hook
from ..core.steps import enter_step, leave_step
from ..tensorflow import functions


def attach(module: Any) -> None:
    """Patches keras.src.optimizers.base_optimizer."""
    Optimizer = module.BaseOptimizer
    original = Optimizer.apply
    is_traced = tracing_test(module)

    @functools.wraps(original)
    def apply(self: Any, *args: Any, **kwargs: Any) -> Any:
        if is_traced() or not hook.on:
            return original(self, *args, **kwargs)
        enter_step(self)
        try:
            return original(self, *args, **kwargs)
        finally:
            step_ended(self)

    Optimizer.apply = apply


def step_ended(optimizer: Any) -> None:
    before = hook.steps
    leave_step(optimizer)
    if hook.steps != before:
        introduce("keras")
        functions.note_applied_outside()


def tracing_test(module: Any) -> Any:
    """Whether `apply` is called to build a graph. With torch, a test that dynamo folds."""
    backend = module.backend
    kind = backend.backend()
    if kind == "torch":
        torch = sys.modules["torch"]
        return torch.compiler.is_compiling if hasattr(torch, "compiler") else lambda: False
    if kind != "tensorflow":
        return backend.in_stateless_scope
    executing_eagerly = sys.modules["tensorflow"].executing_eagerly

    def is_traced() -> bool:
        if executing_eagerly():
            return False
        functions.note_applied()
        return True

    return is_traced
