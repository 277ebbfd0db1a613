"""The losses of the first steps, the fact `first_losses`: to compare a run that has settings with one that has none."""

from __future__ import annotations

import functools
import math
from typing import Any

from ..core.runtime import guarded, hook

STEPS = 20
STATED_AT = (5, STEPS)  # one figure takes a synchronisation with the device

_losses: list[float] = []
hook.forget_in_child.append(_losses.clear)


def attach(autograd: Any) -> None:
    """Patches torch.autograd."""
    original = autograd.backward

    @functools.wraps(original)
    def backward(tensors: Any, *args: Any, **kwargs: Any) -> Any:
        if len(_losses) < STEPS:
            note(tensors)
        return original(tensors, *args, **kwargs)

    autograd.backward = backward


@guarded
def note(tensors: Any) -> None:
    loss = tensors[0] if isinstance(tensors, (list, tuple)) and tensors else tensors
    if getattr(loss, "numel", bool)() == 1:
        _losses.append(float(loss.detach()))
        if len(_losses) in STATED_AT:
            hook.fact("first_losses", [loss if math.isfinite(loss) else None for loss in _losses])
