"""Calls of tf.function: which of them make steps of the training.

A function trains if gradients are computed while it is traced. Whether it also applies them is seen where Keras's
optimizers do it; otherwise it is taken to do so unless an optimizer steps outside.
"""

from __future__ import annotations

import functools
import sys
import weakref
from typing import Any

from ..core import calls, channel
from ..core.batch import sizes
from ..core.frameworks import introduce
from ..core.runtime import clock, enter, get_ident, hook, leave
from . import datasets, inside


class Role:
    """What is known of one tf.function."""

    __slots__ = ("gradients", "applies", "reads", "calls", "__weakref__")

    def __init__(self) -> None:
        self.gradients = self.applies = self.reads = False
        self.calls = 0

    def trains(self) -> bool:
        """Whether the call that has just ended was a step."""
        if self.applies:
            return True
        if not self.gradients or applied_outside:
            return False
        self.calls += 1
        return self.calls > 1  # after the first one an optimizer might have stepped


roles: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()
outermost: dict[int, Any] = {}  # by thread: the function that it has called from eager code
applied_outside = False  # an optimizer stepped in eager code


def forget() -> None:
    outermost.clear()


hook.forget_in_child.append(forget)


def role_in_trace() -> Role | None:
    """The role of the function that is being traced here, perhaps by a thread that a distribution strategy started."""
    function = outermost.get(get_ident())
    if function is None and len(outermost) == 1:
        function = next(iter(outermost.values()))
    if function is None:
        return None
    role = roles.get(function)
    if role is None:
        role = roles[function] = Role()
    return role


def note_gradients() -> None:
    role = role_in_trace()
    if role is not None:
        role.gradients = True


def note_applied() -> None:
    """An optimizer applies gradients while a function is traced."""
    role = role_in_trace()
    if role is not None:
        role.applies = True


def note_applied_outside() -> None:
    global applied_outside
    applied_outside = True


def enter_function(function: Any, arguments: Any) -> tuple[Any, Any]:
    """(the step, None if this is part of another one; the iterator among the arguments). Never raises."""
    call = calls.enter_call(function)
    try:
        ident = get_ident()
        outermost[ident] = function
        iterator = inside.iterator_in(arguments)
        if iterator is not None:
            role = roles.get(function)
            if role is None:
                inside.prepare(sys.modules["tensorflow"])
                role = roles[function] = Role()
            inside.tracing[ident] = role
        return call, iterator
    except Exception as error:
        if not hook.fail("calling a tf.function", error):
            raise
        return call, None


def leave_function(function: Any, call: Any, iterator: Any, arguments: Any, done: bool) -> None:
    ident = get_ident()
    outermost.pop(ident, None)
    inside.tracing.pop(ident, None)
    steps, samples = False, 0
    try:
        role = roles.get(function)
        if role is not None and hook.on:
            if role.reads:
                note_inside(call, iterator)
            steps = done and call is not None and role.trains()
            if steps:
                introduce("tensorflow")
                samples = samples_in(arguments, call)
    except Exception as error:
        if not hook.fail("after a tf.function", error):
            raise
    if call is not None:
        calls.leave_call(call, steps, samples)


def note_inside(call: Any, iterator: Any) -> None:
    """Tells the step what its compiled code waited for."""
    assert inside.meter is not None
    added = inside.meter.read()
    step = call or calls.current(hook.here())
    batches = added.all_batches()
    if step is None or batches <= 0:
        return
    loader = datasets.loader_of(iterator)
    wait_ns = added.exposed_wait_ns(clock() - step.begin)
    step.took_inside(batches, added.all_samples(loader.source().said["args"]["batch_size"]), wait_ns, loader)


def samples_in(arguments: Any, call: Any) -> int:
    """For scripts that make their batches without a loader."""
    if call.thread.fed_by is not None:
        return 0
    return next((size for size, _, leads in sizes(arguments, ("",)) if leads), 0)


def attach(module: Any) -> None:
    """Patches tensorflow.python.eager.polymorphic_function.polymorphic_function."""
    Function = module.Function
    original = Function.__call__
    executing_eagerly = sys.modules["tensorflow"].executing_eagerly

    @functools.wraps(original)
    def __call__(self: Any, *args: Any, **kwds: Any) -> Any:
        if not hook.on or not executing_eagerly() or get_ident() in outermost:
            return original(self, *args, **kwds)
        call, iterator = enter_function(self, args)
        done = False
        try:
            result = original(self, *args, **kwds)
            done = True
        finally:
            leave_function(self, call, iterator, args, done)
        return result

    Function.__call__ = __call__


def attach_tape(module: Any) -> None:
    """Patches GradientTape: in eager code, forward and backward pass; in a graph, that it trains."""
    GradientTape = module.GradientTape
    attach_gradient(GradientTape)
    begin, end = GradientTape.__enter__, GradientTape.__exit__
    executing_eagerly = sys.modules["tensorflow"].executing_eagerly

    @functools.wraps(begin)
    def __enter__(self: Any) -> Any:
        if hook.on and executing_eagerly() and not hook.here().in_forward:
            self.__dict__["_fullbore_span"] = enter(channel.FORWARD)
            hook.here().in_forward = True
        return begin(self)

    @functools.wraps(end)
    def __exit__(self: Any, *error: Any) -> Any:
        try:
            return end(self, *error)
        finally:
            span = self.__dict__.pop("_fullbore_span", None)
            if span is not None:
                span[0].in_forward = False
                leave(span, channel.FORWARD, a=1)

    GradientTape.__enter__ = __enter__
    GradientTape.__exit__ = __exit__


def attach_gradient(GradientTape: Any) -> None:
    original = GradientTape.gradient
    executing_eagerly = sys.modules["tensorflow"].executing_eagerly

    @functools.wraps(original)
    def gradient(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not hook.on:
            return original(self, *args, **kwargs)
        if not executing_eagerly():
            note_gradients()
            return original(self, *args, **kwargs)
        span = enter(channel.BACKWARD)
        try:
            return original(self, *args, **kwargs)
        finally:
            if span is not None:
                leave(span, channel.BACKWARD)

    GradientTape.gradient = gradient
