"""What is done to a model before its first training step: channels_last and compile, and the switches of the libraries
that compute it.

The module that counts is the outermost one that a training step calls, with parameters to train. It is met right before
its first call, when the script has moved, wrapped and hooked it as it wants it.
"""

from __future__ import annotations

import functools
import sys
import weakref
from typing import Any

from ..core.settings import attempted, settings
from ..torch import forward

NO_CUDA = "there is no CUDA device"

_met: weakref.WeakSet[Any] = weakref.WeakSet()


def attach(nn: Any) -> None:
    set_switches()
    forward.at_forward.append(at_forward)


@attempted("channels_last", "compile", "tf32", "cudnn_benchmark")
def at_forward(module: Any) -> None:
    if module in _met or not is_trained(module):
        return
    _met.add(module)
    set_switches()  # once more: the script may have set its own since
    if settings.get("channels_last") is not None:
        settings.say(channels_last(module))
    if settings.get("compile"):
        settings.say({"compile": compile_in_place(module)})


def is_trained(module: Any) -> bool:
    return any(parameter.requires_grad for parameter in module.parameters())


def set_switches() -> None:
    torch = sys.modules["torch"]
    for name, switch in (("tf32", set_tf32), ("cudnn_benchmark", set_cudnn_benchmark)):
        wanted = settings.get(name)
        if wanted is None:
            continue
        if torch.cuda.is_available():
            switch(torch, wanted)
            settings.applied(name)
        else:
            settings.refused(name, NO_CUDA)


def set_tf32(torch: Any, wanted: bool) -> None:
    torch.set_float32_matmul_precision("high" if wanted else "highest")
    torch.backends.cudnn.allow_tf32 = wanted


def set_cudnn_benchmark(torch: Any, wanted: bool) -> None:
    torch.backends.cudnn.benchmark = wanted


def channels_last(module: Any) -> dict[str, str]:
    """Its parameters' layout; convolutions then give the layers behind them the same. Nothing for a model without."""
    torch = sys.modules["torch"]
    if not any(parameter.dim() == 4 for parameter in module.parameters()):
        return {}
    if "fsdp" in type(module).__module__:
        return {"channels_last": "the parameters are sharded by FSDP"}
    wanted = torch.channels_last if settings.get("channels_last") else torch.contiguous_format
    module.to(memory_format=wanted)
    return {"channels_last": ""}


def compile_in_place(module: Any) -> str:
    """Module.compile keeps the object and the names in its state_dict. Returns why it was refused, or ""."""
    if not hasattr(module, "compile"):
        return "this torch cannot compile a module in place (2.2 and later can)"
    if forward.forward is not None and forward.forward.compiled:
        return "the script already compiles its model"
    hooked = [name or type(module).__name__ for name, part in module.named_modules() if has_hooks(part)]
    if hooked:
        return f"forward or backward hooks would break the graph: {', '.join(hooked[:3])}"
    module.compile()
    return ""


def has_hooks(module: Any) -> bool:
    return any(module.__dict__.get(name) for name in ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks"))


def attach_data_parallel(module: Any) -> None:
    """Patches torch.nn.parallel.distributed: DDP's own arguments, and the layout that its buckets are made for."""
    DDP = module.DistributedDataParallel
    original = DDP.__init__

    @functools.wraps(original)
    def __init__(self: Any, module: Any, *args: Any, **kwargs: Any) -> None:
        if settings.get("channels_last") is not None:
            settings.say(channels_last(module))
        for name in ("bucket_cap_mb", "static_graph"):
            if settings.get(name) is not None:
                kwargs[name] = settings.get(name)
        original(self, module, *args, **kwargs)
        for name in ("bucket_cap_mb", "static_graph"):
            if settings.get(name) is not None:
                settings.applied(name)

    DDP.__init__ = __init__
