"""Torch's optimizers: their steps, and zero_grad.

Torch has had global step hooks since 2.0; only for older versions, each optimizer class's `step` is wrapped, once.
"""

from __future__ import annotations

import functools
from typing import Any

from ..core import channel
from ..core.runtime import timed_phase
from ..core.steps import enter_step, leave_step
from .compiling import is_compiling_test


def attach(module: Any) -> None:
    """Patches torch.optim.optimizer."""
    is_compiling = is_compiling_test()
    if hasattr(module, "register_optimizer_step_pre_hook"):

        def before(optimizer: Any, args: Any, kwargs: Any) -> None:
            if not is_compiling():
                enter_step(optimizer)

        def after(optimizer: Any, args: Any, kwargs: Any) -> None:
            if not is_compiling():
                leave_step(optimizer)

        module.register_optimizer_step_pre_hook(before)
        module.register_optimizer_step_post_hook(after)
    else:
        wrap_each_step(module.Optimizer)
    attach_zero_grad(module.Optimizer, is_compiling)


def wrap_each_step(Optimizer: Any) -> None:
    """For torch < 2.0: its Optimizer.__init__ wraps `step` of the instance's class for the profiler; so do we."""
    wrap_for_profile = Optimizer._hook_for_profile

    @functools.wraps(wrap_for_profile)
    def _hook_for_profile(self: Any) -> None:
        wrap_for_profile(self)
        step = type(self).step
        if not getattr(step, "_fullbore", False):
            timed = timed_step(step)
            timed._fullbore = True  # type: ignore[attr-defined]
            type(self).step = timed

    Optimizer._hook_for_profile = _hook_for_profile


def timed_step(original: Any) -> Any:
    @functools.wraps(original)
    def step(self: Any, *args: Any, **kwargs: Any) -> Any:
        enter_step(self)
        result = original(self, *args, **kwargs)
        leave_step(self)
        return result

    return step


def attach_zero_grad(Optimizer: Any, is_compiling: Any) -> None:
    Optimizer.zero_grad = timed_phase(Optimizer.zero_grad, channel.OPTIMIZER, is_compiling)
