"""Where the host waits for the device.

Calls of compiled functions return before their work is done. What looks at a result waits for it: float(loss), print,
np.asarray and item() all read `_value` of the array, or let NumPy read its memory.
"""

from __future__ import annotations

import functools
import sys
from typing import Any, Callable

from ..core import channel
from ..core.interrupts import is_the_scripts
from ..core.runtime import Span, enter, hook, leave

METHODS = ("block_until_ready", "item", "tolist", "__array__")


def begin() -> Span | None:
    """None inside another wait, a compiled function or a loader: the outer one counts."""
    if not hook.on:
        return None
    thread = hook.here()
    if thread.in_forward or thread.in_next or thread.phase == channel.SYNC:
        return None
    return enter(channel.SYNC)


def timed(original: Callable[..., Any]) -> Callable[..., Any]:
    def wait(*args: Any, **kwargs: Any) -> Any:
        span = begin()
        if span is None:
            return original(*args, **kwargs)
        try:
            return original(*args, **kwargs)
        finally:
            leave(span, channel.SYNC)

    try:
        return functools.wraps(original)(wait)
    except (AttributeError, TypeError) as error:  # a method of C++ without a name
        if is_the_scripts(error):
            raise
        return wait


def attach(jax: Any) -> None:
    for name in ("block_until_ready", "device_get"):
        if hasattr(jax, name):
            setattr(jax, name, timed(getattr(jax, name)))
    Array = getattr(sys.modules.get("jax._src.array"), "ArrayImpl", None)
    if Array is None:
        return
    for name in METHODS:
        if name in vars(Array):
            setattr(Array, name, timed(getattr(Array, name)))
    value = vars(Array).get("_value")
    if isinstance(value, property) and value.fget is not None:
        Array._value = property(timed(value.fget), value.fset, value.fdel, value.__doc__)
