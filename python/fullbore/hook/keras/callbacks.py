"""Which callback takes how long: the fact `callbacks`, by class, of the time on the training's thread.

Their time is not a phase: where a callback is the script's own, the line sampler finds its lines.
"""

from __future__ import annotations

import functools
from typing import Any

from ..core.runtime import clock, get_ident, guarded, hook

# The methods that `fit` calls between steps.
METHODS = ("on_train_batch_begin", "on_train_batch_end", "on_batch_begin", "on_batch_end")
METHODS += ("on_epoch_begin", "on_epoch_end")  # type: ignore[assignment]
TELL_EVERY_NS = 10_000_000_000
NAMED = 8  # of the callbacks, those that take longest

spent: dict[str, int] = {}  # ns, by class
depth: dict[int, int] = {}  # by thread that trains: callbacks that are on its stack
told_ns = 0


def forget() -> None:
    spent.clear()
    depth.clear()


hook.forget_in_child.append(forget)


def attach(module: Any) -> None:
    """Patches keras.src.callbacks.callback_list."""
    CallbackList = module.CallbackList
    begin, end_epoch, end = CallbackList.on_train_begin, CallbackList.on_epoch_end, CallbackList.on_train_end

    @functools.wraps(begin)
    def on_train_begin(self: Any, *args: Any, **kwargs: Any) -> Any:
        watch(self)
        return begin(self, *args, **kwargs)

    @functools.wraps(end_epoch)
    def on_epoch_end(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return end_epoch(self, *args, **kwargs)
        finally:
            tell()

    @functools.wraps(end)
    def on_train_end(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return end(self, *args, **kwargs)
        finally:
            tell(at_last=True)

    CallbackList.on_train_begin = on_train_begin
    CallbackList.on_epoch_end = on_epoch_end
    CallbackList.on_train_end = on_train_end


@guarded
def watch(callbacks: Any) -> None:
    depth[get_ident()] = 0
    for callback in callbacks.callbacks:
        for cls in type(callback).__mro__:
            if cls is not object and not cls.__module__.startswith("keras.src.callbacks.callback"):
                watch_class(cls)


def watch_class(cls: Any) -> None:
    for name in METHODS:
        method = cls.__dict__.get(name)
        # Keras looks for this mark to leave out calls that would do nothing.
        if callable(method) and not hasattr(method, "_is_default") and not hasattr(method, "_fullbore"):
            setattr(cls, name, timed(method))


def timed(method: Any) -> Any:
    @functools.wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        ident = get_ident()
        if not hook.on or depth.get(ident, 1):  # inside another one, or on a thread of Keras's beside the training
            return method(self, *args, **kwargs)
        depth[ident] = 1
        begin = clock()
        try:
            return method(self, *args, **kwargs)
        finally:
            depth[ident] = 0
            name = type(self).__name__
            spent[name] = spent.get(name, 0) + clock() - begin

    call._fullbore = True  # type: ignore[attr-defined]
    return call


@guarded
def tell(at_last: bool = False) -> None:
    global told_ns
    now = clock()
    if not spent or (not at_last and now - told_ns < TELL_EVERY_NS):
        return
    told_ns = now
    longest = sorted(spent.items(), key=lambda item: -item[1])[:NAMED]
    hook.fact("callbacks", {name: {"ms": round(ns / 1e6, 3)} for name, ns in longest})
