"""Whether a backward pass exchanges gradients with other ranks: by the flag of each wrapper that turns it off.

DistributedDataParallel sets its own in the forward pass, which decides what the backward pass does; no_sync() of
FullyShardedDataParallel and set_requires_gradient_sync() of fully_shard set those of all that they shard.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Any

OF_MODULE = ("require_forward_param_sync", "_sync_gradients")
OF_GROUP = "reduce_grads"

Flag = tuple[Any, str]  # a weak reference to what has it, and its name


def flags_of(model: Any) -> list[Flag]:
    of_modules = [(module, name) for module in model.modules() for name in OF_MODULE if name in vars(module)]
    of_groups = [(group, OF_GROUP) for group in sharded_groups(model) if hasattr(group, OF_GROUP)]
    return [(weakref.ref(owner), name) for owner, name in of_modules + of_groups]


def is_any_set(flags: list[Flag]) -> bool | None:
    """None where nothing is known."""
    owners = [(reference(), name) for reference, name in flags]
    values = [bool(getattr(owner, name)) for owner, name in owners if owner is not None]
    return any(values) if values else None


def sharded_groups(model: Any) -> Iterator[Any]:
    """The groups of parameters that fully_shard gathers and reduces together."""
    for module in model.modules():
        if not hasattr(type(module), "_get_fsdp_state"):
            continue
        state = module._get_fsdp_state()
        yield from getattr(state, "_fsdp_param_groups", None) or filter(None, [vars(state).get("_fsdp_param_group")])


def receiving_gradients(model: Any) -> Iterator[Any]:
    """Its parameters; of those that fully_shard took over, what is gathered of them, once it has been."""
    yield from [gathered for _, gathered in gathered_of(model)] or model.parameters()


def gathered_of(model: Any) -> Iterator[tuple[Any, Any]]:
    """Of what fully_shard took over: each parameter as the optimizer has it, and as the modules get it."""
    for group in sharded_groups(model):
        for parameter in group.fsdp_params:
            if hasattr(parameter, "_unsharded_param"):
                yield parameter.sharded_param, parameter._unsharded_param
