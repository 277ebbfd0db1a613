"""Keras's trainers: one call of the training function is a step, or several (`steps_per_execution`).

Every backend's trainer makes that function in `make_train_function`, once, and `fit` and `train_on_batch` call it.
With TensorFlow it is called with an iterator whose batches the compiled code takes; with JAX it takes them in Python;
with PyTorch it is handed the batch. What evaluates and predicts is one phase, in which nothing else is recorded.
"""

from __future__ import annotations

import functools
from typing import Any

from ..core import calls, channel
from ..core.batch import sizes
from ..core.frameworks import introduce
from ..core.runtime import enter, hook, leave

handed_over: dict[int, int] = {}  # by thread: samples given to train_on_batch
hook.forget_in_child.append(handed_over.clear)


def attach(module: Any, backend: str) -> None:
    """Patches keras.src.backend.*.trainer."""
    (Trainer,) = [
        value
        for name, value in vars(module).items()
        if name.endswith("Trainer") and value.__module__ == module.__name__
    ]
    attach_training(Trainer, backend)
    attach_train_on_batch(Trainer)
    for name in ("evaluate", "test_on_batch"):
        setattr(Trainer, name, as_one_pass(getattr(Trainer, name), validates=1))
    for name in ("predict", "predict_on_batch"):  # what a policy acts by, too
        setattr(Trainer, name, as_one_pass(getattr(Trainer, name), validates=0))
    for name in ("_symbolic_build", "_maybe_symbolic_build"):  # they look at a first batch
        if hasattr(Trainer, name):
            setattr(Trainer, name, unseen(getattr(Trainer, name)))


def attach_training(Trainer: Any, backend: str) -> None:
    make = Trainer.make_train_function

    @functools.wraps(make)
    def make_train_function(self: Any, *args: Any, **kwargs: Any) -> Any:
        made = make(self, *args, **kwargs)
        function = self.train_function
        if hook.on and function is not None and not hasattr(function, "_fullbore"):
            self.train_function = timed(self, function, backend)
        return made

    Trainer.make_train_function = make_train_function


def timed(model: Any, function: Any, backend: str) -> Any:
    compiled = not model.run_eagerly and (backend != "torch" or bool(model.jit_compile))

    @functools.wraps(function)
    def train_function(*args: Any) -> Any:
        call = calls.enter_call(model, calls.WHOLE if compiled else calls.IN_PARTS)
        if call is None:
            return function(*args)
        done = False
        try:
            result = function(*args)
            done = True
        finally:
            leave_step(call, done)
        return result

    train_function._fullbore = True  # type: ignore[attr-defined]
    return train_function


def leave_step(call: Any, done: bool) -> None:
    if done and hook.facts.get("framework") != "keras":
        introduce("keras")
    calls.leave_call(call, done, handed_over.get(call.thread.number, 0))


def attach_train_on_batch(Trainer: Any) -> None:
    original = Trainer.train_on_batch

    @functools.wraps(original)
    def train_on_batch(self: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
        number = note_samples(x)
        try:
            return original(self, x, *args, **kwargs)
        finally:
            handed_over.pop(number, None)

    Trainer.train_on_batch = train_on_batch


def note_samples(x: Any) -> int:
    """Of a batch that no loader of ours gave. Never raises."""
    try:
        number = hook.here().number
        handed_over[number] = next((size for size, _, leads in sizes(x, ("",)) if leads), 0)
        return number
    except Exception as error:
        if not hook.fail("train_on_batch", error):
            raise
        return -1


def as_one_pass(original: Any, validates: int) -> Any:
    @functools.wraps(original)
    def passes(*args: Any, **kwargs: Any) -> Any:
        span = enter(channel.FORWARD)
        if span is None:
            return original(*args, **kwargs)
        thread = span[0]
        inside, thread.in_next = thread.in_next, True
        try:
            return original(*args, **kwargs)
        finally:
            thread.in_next = inside
            if not inside:
                leave(span, channel.FORWARD, a=0, b=validates)
            else:
                thread.phase = span[1]

    return passes


def unseen(original: Any) -> Any:
    @functools.wraps(original)
    def build(*args: Any, **kwargs: Any) -> Any:
        if not hook.on:
            return original(*args, **kwargs)
        thread = hook.here()
        inside, thread.in_next = thread.in_next, True
        try:
            return original(*args, **kwargs)
        finally:
            thread.in_next = inside

    return build
