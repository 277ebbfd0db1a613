"""Gradient accumulation for a script that has none: of so many steps of its optimizer, the last one is made, with the
mean of the gradients. With batches that are smaller by the same factor, the global batch is held.

What belongs to a step of the optimizer waits for it: zeroing and clipping gradients, and a learning rate that changes
with each step. The loss has to be a mean over its batch, as it is by default.
"""

from __future__ import annotations

import functools
import sys
import weakref
from typing import Any

from ..core.settings import settings
from .precision import scaler_is_used

CLIPPING = ("clip_grad_norm_", "clip_grad_value_")
INFINITE = float("inf")


class Steps:
    """How far one optimizer is in accumulating."""

    def __init__(self) -> None:
        self.waiting = 0  # steps asked for since the last one that was made
        self.asked = 0
        self.inside = False  # one step is part of another's


_steps: weakref.WeakKeyDictionary[Any, Steps] = weakref.WeakKeyDictionary()
_at: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()  # by schedule: steps asked for at its last step


def factor() -> int:
    """1 if nothing is accumulated."""
    return int(settings.get("accumulate") or 1)


def is_last() -> bool:
    """Whether the coming step is really made."""
    return any(steps.waiting == factor() - 1 for steps in _steps.values()) or not _steps


def attach(module: Any) -> None:
    """Patches torch.optim.optimizer."""
    Optimizer = module.Optimizer
    init, zero = Optimizer.__init__, Optimizer.zero_grad

    @functools.wraps(init)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        init(self, *args, **kwargs)
        cls = type(self)
        if not getattr(cls.step, "_fullbore_accumulates", False):
            cls.step = accumulating(cls.step)

    @functools.wraps(zero)
    def zero_grad(self: Any, *args: Any, **kwargs: Any) -> Any:
        steps = _steps.get(self)
        return None if steps is not None and steps.waiting else zero(self, *args, **kwargs)

    Optimizer.__init__ = __init__
    Optimizer.zero_grad = zero_grad


def accumulating(original: Any) -> Any:
    @functools.wraps(original)
    def step(self: Any, *args: Any, **kwargs: Any) -> Any:
        steps = _steps.get(self)
        if steps is None:
            reason = why_not(self)
            if reason:
                settings.wanted.pop("accumulate", None)
                settings.refused("accumulate", reason)
            elif factor() > 1:
                settings.applied("accumulate")
            steps = _steps[self] = Steps()
        if factor() == 1 or steps.inside:
            return original(self, *args, **kwargs)
        steps.asked += 1
        closure = args[0] if args else kwargs.get("closure")
        if steps.waiting < factor() - 1:
            return skip(steps, closure)
        steps.inside = True
        try:
            if closure is None:
                return original(self, *args, **kwargs)
            loss = with_gradients(closure)  # it zeroes gradients, which are kept: so this step is still a waiting one
            original(self)
            return loss
        finally:
            steps.inside, steps.waiting = False, 0

    step._fullbore_accumulates = True  # type: ignore[attr-defined]
    return step


def skip(steps: Steps, closure: Any) -> Any:
    try:
        return None if closure is None else with_gradients(closure)
    finally:
        steps.waiting += 1


def with_gradients(closure: Any) -> Any:
    with sys.modules["torch"].enable_grad():
        return closure()


def why_not(optimizer: Any) -> str:
    if type(optimizer).__name__ == "LBFGS":
        return "LBFGS computes the loss several times in a step"
    if scaler_is_used():
        return "the script's GradScaler would scale the sum of the gradients several times"
    return ""


def attach_backward(autograd: Any) -> None:
    original = autograd.backward

    @functools.wraps(original)
    def backward(tensors: Any, *args: Any, **kwargs: Any) -> Any:
        if factor() > 1:
            several = isinstance(tensors, (list, tuple))
            tensors = [tensor / factor() for tensor in tensors] if several else tensors / factor()
        return original(tensors, *args, **kwargs)

    autograd.backward = backward


def attach_modules(nn: Any) -> None:
    zero = nn.Module.zero_grad

    @functools.wraps(zero)
    def zero_grad(self: Any, *args: Any, **kwargs: Any) -> None:
        if not any(steps.waiting for steps in _steps.values()):
            zero(self, *args, **kwargs)

    nn.Module.zero_grad = zero_grad
    for name in CLIPPING:
        clipping = only_at_last(getattr(nn.utils.clip_grad, name))
        setattr(nn.utils.clip_grad, name, clipping)
        setattr(nn.utils, name, clipping)


def only_at_last(original: Any) -> Any:
    @functools.wraps(original)
    def clip(parameters: Any, limit: Any, *args: Any, **kwargs: Any) -> Any:
        return original(parameters, limit if factor() == 1 or is_last() else INFINITE, *args, **kwargs)

    return clip


def attach_schedules(module: Any) -> None:
    """Patches torch.optim.lr_scheduler: what changes with each step waits with it, what changes each epoch does not."""
    base = getattr(module, "LRScheduler", None)
    for cls in vars(module).values():
        if isinstance(cls, type) and base is not None and issubclass(cls, base) and "step" in cls.__dict__:
            cls.step = with_steps(cls.step)  # type: ignore[attr-defined]


def with_steps(original: Any) -> Any:
    @functools.wraps(original)
    def step(self: Any, *args: Any, **kwargs: Any) -> Any:
        steps = _steps.get(getattr(self, "optimizer", None))
        if steps is not None and factor() > 1:
            since, _at[self] = steps.asked - _at.get(self, 0), steps.asked
            if since == 1 and steps.waiting:
                return None
        return original(self, *args, **kwargs)

    return step
