"""The implementation that an optimizer of torch's uses: one kernel for all parameters ("fused"), or one for each kind
of operation ("foreach"). Set before its first step, when its parameters are where they will be.
"""

from __future__ import annotations

import sys
import weakref
from typing import Any

from ..core.interrupts import is_the_scripts
from ..core.settings import attempted, settings

_met: weakref.WeakSet[Any] = weakref.WeakSet()


def attach(module: Any) -> None:
    """Patches torch.optim.optimizer."""
    if settings.get("optimizer") is not None and hasattr(module, "register_optimizer_step_pre_hook"):
        module.register_optimizer_step_pre_hook(before_step)


@attempted("optimizer")
def before_step(optimizer: Any, args: Any, kwargs: Any) -> None:
    wanted = settings.get("optimizer")
    if wanted is None or optimizer in _met:
        return
    _met.add(optimizer)
    reason = why_not(optimizer, wanted)
    if not reason:
        other = "foreach" if wanted == "fused" else "fused"
        for group in optimizer.param_groups:
            group[wanted], group[other] = True, None
        if wanted == "fused":
            optimizer._step_supports_amp_scaling = True  # as torch's own constructors set it
            move_step_counts(optimizer)
    settings.say({"optimizer": reason})


def why_not(optimizer: Any, wanted: str) -> str:
    name = type(optimizer).__name__
    if wanted not in optimizer.defaults:
        return f"{name} has no {wanted} implementation"
    if any(group.get("differentiable") for group in optimizer.param_groups):
        return f"{name} was created with differentiable=True"
    check = getattr(sys.modules["torch.optim.optimizer"], "_device_dtype_check_for_fused", None)
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    if any(p.is_sparse or (p.grad is not None and p.grad.is_sparse) for p in parameters):
        return "it has sparse parameters or gradients"
    if wanted == "fused" and check is not None:
        try:
            for parameter in parameters:
                check(parameter)
        except RuntimeError as error:
            if is_the_scripts(error):
                raise
            return str(error)
    return ""


def move_step_counts(optimizer: Any) -> None:
    """Moves those of a state loaded from a checkpoint: the fused kernel reads them on the parameters' device."""
    for parameter, known in optimizer.state.items():
        if hasattr(known.get("step"), "to"):
            known["step"] = known["step"].to(parameter.device)
