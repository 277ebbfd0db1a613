"""Collectives of torch.distributed that the script calls itself (DDP reduces gradients inside backward)."""

from __future__ import annotations

import functools
from typing import Any

from ..core import channel
from ..core.runtime import enter, guarded, leave
from .compiling import is_compiling_test

NAMES = (
    *("all_gather", "all_gather_coalesced", "all_gather_into_tensor", "all_gather_object", "all_gather_single"),
    *("all_reduce", "all_reduce_coalesced", "all_to_all", "all_to_all_single", "barrier", "broadcast"),
    *("broadcast_object_list", "gather", "gather_object", "monitored_barrier", "recv", "reduce", "reduce_scatter"),
    *("reduce_scatter_single", "reduce_scatter_tensor", "scatter", "scatter_object_list", "send"),
)


@guarded
def bytes_of(args: Any, kwargs: Any) -> int:
    """The size of the first tensor, or list of tensors, among the arguments."""
    for value in (*args, *kwargs.values()):
        tensors = value if isinstance(value, (list, tuple)) else (value,)
        sizes = [tensor.numel() * tensor.element_size() for tensor in tensors if hasattr(tensor, "element_size")]
        if sizes:
            return sum(sizes)
    return 0


def timed(original: Any, is_compiling: Any) -> Any:
    reduces = int("reduce" in original.__name__)

    @functools.wraps(original)
    def collective(*args: Any, **kwargs: Any) -> Any:
        span = None if is_compiling() else enter(channel.COLLECTIVE)
        if span is None or span[1] == channel.COLLECTIVE:  # inside another one
            return original(*args, **kwargs)
        try:
            return original(*args, **kwargs)
        finally:
            leave(span, channel.COLLECTIVE, a=bytes_of(args, kwargs) or 0, b=reduces)

    return collective


def attach_data_parallel(module: Any) -> None:
    """DistributedDataParallel broadcasts rank 0's buffers (those of BatchNorm) at the start of each forward pass: there
    the ranks wait for each other for the first time."""
    parallel = module.DistributedDataParallel
    if hasattr(parallel, "_sync_buffers"):
        parallel._sync_buffers = timed(parallel._sync_buffers, is_compiling_test())


def attach(distributed: Any) -> None:
    """Patches torch.distributed and the module its functions come from, so that they still pickle by name."""
    if not distributed.is_available():
        return
    source: Any | None = getattr(distributed, "distributed_c10d", None)
    is_compiling = is_compiling_test()
    for name in NAMES:
        original = getattr(distributed, name, None)
        if original is None:
            continue
        wrapper = timed(original, is_compiling)
        setattr(distributed, name, wrapper)
        if source is not None and getattr(source, name, None) is original:
            setattr(source, name, wrapper)
