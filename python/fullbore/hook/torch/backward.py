"""autograd.backward, and when this rank's own part of it is done."""

from __future__ import annotations

import functools
import sys
from typing import Any

from ..core import channel, native
from ..core.runtime import clock, enter, guarded, hook, leave
from ..core.where import say_where
from . import exchanges
from .compiling import is_compiling_test

# Gradients come in the reverse order of the forward pass, so the model's first parameters come last. A few of them
# are watched, because the very first may not take part.
WATCHED_PARAMETERS = 3
EXCHANGED, NOT_EXCHANGED = 1, 2


class LastGradient:
    """When the gradient of the model's first parameters became ready in the current backward pass.

    Only set if several ranks train together: what follows in such a backward is the wait for the others.
    """

    def __init__(self) -> None:
        self.ready_ns = 0
        self.handles: list[Any] = []
        self.flags: list[exchanges.Flag] = []

    @guarded
    def watch(self, model: Any) -> None:
        for handle in self.handles:
            handle.remove()
        self.handles = []
        self.flags = exchanges.flags_of(model)
        for parameter in exchanges.receiving_gradients(model):
            if parameter.requires_grad:
                if hasattr(parameter, "register_post_accumulate_grad_hook"):
                    self.handles.append(parameter.register_post_accumulate_grad_hook(self.note))
                else:
                    self.handles.append(parameter.register_hook(self.note))
            if len(self.handles) == WATCHED_PARAMETERS:
                return

    def note(self, _: Any) -> None:
        self.ready_ns = clock()

    @guarded
    def exchanged(self) -> int:
        """Whether the pass that ends here exchanged gradients, as record/channel.h has it."""
        synced = exchanges.is_any_set(self.flags)
        return 0 if synced is None else EXCHANGED if synced else NOT_EXCHANGED


last_gradient = LastGradient()


def world_size() -> int:
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return 1
    return distributed.get_world_size()


@guarded
def begin_recording() -> None:
    """A process that computes gradients trains, whether or not it has a loader or an optimizer of torch's."""
    hook.open()


def attach(autograd: Any) -> None:
    """Patches torch.autograd.backward, which Tensor.backward calls by that name."""
    original = autograd.backward
    is_compiling = is_compiling_test()

    run = hook.run if native.extension is not None else None

    @functools.wraps(original)
    def backward(*args: Any, **kwargs: Any) -> None:
        if is_compiling():
            return original(*args, **kwargs)
        if hook.channel is None:
            begin_recording()
        if run is not None and not last_gradient.handles and "backward" in hook.said:
            return run(channel.BACKWARD, original, args, kwargs)
        span = enter(channel.BACKWARD)
        if span is None:
            return original(*args, **kwargs)
        last_gradient.ready_ns = 0
        try:
            return original(*args, **kwargs)
        finally:
            ready_ns = last_gradient.ready_ns
            leave(span, channel.BACKWARD, 0, ready_ns, last_gradient.exchanged() or 0 if ready_ns else 0)
            if "backward" not in hook.said:
                say_where("backward")

    autograd.backward = backward
