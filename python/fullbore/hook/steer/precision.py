"""Mixed precision for a script that has none: autocast around the outermost module of a training step alone, whose
outputs are float32 again, so that the loss is what the script computes it from.

Refused where the script has a precision of its own, and where a part of it would compute something else in 16 bits.
"""

from __future__ import annotations

import functools
import sys
import weakref
from typing import Any

from ..core.frames import is_user_file
from ..core.settings import attempted, settings
from ..torch import forward
from ..torch.facts import autocast
from .models import is_trained

MARK = "_fullbore_autocast"  # on the module: its device's kind and the dtype
DTYPES = {"bf16": "bfloat16", "fp16": "float16"}

_met: weakref.WeakSet[Any] = weakref.WeakSet()
_patched: set[type] = set()
_scalers: weakref.WeakSet[Any] = weakref.WeakSet()


class State:
    refused = False  # from a step on, after it had been applied


state = State()


def attach(nn: Any) -> None:
    """Patches torch.nn."""
    forward.at_forward.append(at_forward)
    functional = nn.functional
    functional.binary_cross_entropy = refusing(functional.binary_cross_entropy)


def attach_scaler(module: Any) -> None:
    """Patches torch.amp.grad_scaler."""
    original = module.GradScaler.__init__

    @functools.wraps(original)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        _scalers.add(self)

    module.GradScaler.__init__ = __init__


def scaler_is_used() -> bool:
    return any(scaler.is_enabled() for scaler in _scalers)


def refusing(original: Any) -> Any:
    """BCELoss takes probabilities, which 16 bits round to 0 and 1: it gets float32, and autocast ends for good."""

    @functools.wraps(original)
    def binary_cross_entropy(*args: Any, **kwargs: Any) -> Any:
        if settings.get("precision") not in DTYPES or state.refused or not _patched:
            return original(*args, **kwargs)
        state.refused = True
        settings.refused("precision", "the loss is BCELoss, whose probabilities 16 bits would round to 0 and 1")
        torch = sys.modules["torch"]
        with torch.autocast(args[0].device.type, enabled=False):
            return original(*args, **kwargs)

    return binary_cross_entropy


@attempted("precision")
def at_forward(module: Any) -> None:
    wanted = settings.get("precision")
    if wanted is None or module in _met or not is_trained(module):
        return
    _met.add(module)
    torch = sys.modules["torch"]
    kind = next(module.parameters()).device.type
    reason = why_not(torch, module, wanted, kind)
    if reason:
        settings.refused("precision", reason)
        return
    if wanted in DTYPES:
        module.__dict__[MARK] = (kind, getattr(torch, DTYPES[wanted]))
        patch_class(torch, module)
    settings.applied("precision")


def why_not(torch: Any, module: Any, wanted: str, kind: str) -> str:
    own = autocast(torch)
    if own is not None:
        return f"the script has its own autocast, to {own}"
    dtype = next(iter({str(p.dtype) for p in module.parameters() if p.dtype != torch.float32}), None)
    if dtype is not None:
        return f"the model has parameters of {dtype}"
    if wanted == "fp32":
        return ""
    if type(module).__module__.startswith(("deepspeed", "apex")):
        return f"{type(module).__module__.partition('.')[0]} sets the precision itself"
    if wanted == "fp16" and not scaler_is_used():
        return "float16 needs a GradScaler, and the script has none"
    if wanted == "bf16" and kind == "cuda" and not torch.cuda.is_bf16_supported():
        return "this device does not support bfloat16"
    unfit = functions_without_custom_fwd(torch)
    if unfit:
        return f"an autograd.Function without custom_fwd: {unfit[0]}"
    return ""


def functions_without_custom_fwd(torch: Any) -> list[str]:
    """Only the script's own; libraries are assumed to know what they do."""
    found, todo = [], list(torch.autograd.Function.__subclasses__())
    while todo:
        cls = todo.pop()
        todo.extend(cls.__subclasses__())
        code = getattr(cls.forward, "__code__", None)
        place = getattr(sys.modules.get(cls.__module__), "__file__", None)
        is_marked = code is not None and code.co_name == "decorate_fwd"
        if place and is_user_file(place) and not is_marked:
            found.append(cls.__name__)
    return found


def patch_class(torch: Any, module: Any) -> None:
    """In the class and not in the object, which may be copied and pickled; but in the object where a library has put
    a `forward` there."""
    if "forward" in module.__dict__:
        module.__dict__["forward"] = functools.wraps(module.forward)(
            functools.partial(in_autocast, torch, module.forward, module)
        )
        return
    cls = type(module)
    if cls in _patched:
        return
    _patched.add(cls)
    original = cls.forward

    @functools.wraps(original)
    def forward(self: Any, *args: Any, **kwargs: Any) -> Any:
        if getattr(self, MARK, None) is None or not self.training or state.refused:
            return original(self, *args, **kwargs)
        kind, dtype = getattr(self, MARK)
        with torch.autocast(kind, dtype=dtype):
            result = original(self, *args, **kwargs)
        return upcast(torch, result)

    cls.forward = forward


def in_autocast(torch: Any, original: Any, module: Any, *args: Any, **kwargs: Any) -> Any:
    if not module.training or state.refused:
        return original(*args, **kwargs)
    kind, dtype = module.__dict__[MARK]
    with torch.autocast(kind, dtype=dtype):
        result = original(*args, **kwargs)
    return upcast(torch, result)


def upcast(torch: Any, value: Any) -> Any:
    """The same with float32 for 16 bits: tensors, in lists, tuples and dictionaries (the outputs of transformers)."""
    if isinstance(value, torch.Tensor):
        return value.float() if value.dtype in (torch.bfloat16, torch.float16) else value
    if isinstance(value, tuple):
        parts = [upcast(torch, part) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    if isinstance(value, list):
        return [upcast(torch, part) for part in value]
    if isinstance(value, dict):
        for key in value:
            value[key] = upcast(torch, value[key])
    return value
