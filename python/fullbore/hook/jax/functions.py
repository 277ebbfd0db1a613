"""Which compiled function is the training's step.

Nothing says so: the step is found by what it does with the training's state. It takes the parameters and returns new
ones, which it is given at the next call. So a function is the step if what it returned comes back to it, and where
several do that, the one with the most bytes of it. Where none does (the optimizer is not compiled, only the gradients
are), it is the one that returns the most that looks like what it was given.

That is known at the second call, or a few calls later; the step before are then recorded with the times they had.
What is not the step is an evaluation if steps passed without it, and otherwise a part of what each step computes.
"""

from __future__ import annotations

import weakref
from typing import Any

from ..core import channel
from ..core.runtime import Thread, hook
from ..core.steps import count_step, state
from . import batches, facts
from .arrays import References, again, arrays_in, bytes_of, kind_of, references

LEARNING_CALLS = 4  # of each function
CALLS_TO_WAIT = 3  # for other functions to show that they are the step
SELDOM = 2  # steps from one call to the next

# What a compiled function's record says of it: EventKind kForward, `a`; an evaluation also says so in `b`.
EVALUATION, PART_OF_STEP, OTHER = 0, 2, 3


class Function:
    """All compiled functions of one code: a function that is compiled anew for each call is one."""

    __slots__ = (
        "name",
        "code",
        "calls",
        "returned",
        "kinds",
        "fed_bytes",
        "like_bytes",
        "evaluates",
        "at_step",
        "ends",
        "batch",
        "compiled",
        "__weakref__",
    )

    def __init__(self, name: str, code: Any) -> None:
        self.name = name
        self.code = code  # kept, because it is known by its id
        self.calls = 0
        self.returned: References = {}  # by its last call
        self.kinds: set[Any] = set()  # of the arrays that it returned
        self.fed_bytes = 0  # of what it returned and was given again
        self.like_bytes = 0  # of what it returned that has the shape and type of what it was given
        self.evaluates = False
        self.at_step = 0  # of the training, when it was called last
        self.ends: list[int] = []  # of its calls, before it was known what it is
        self.batch = batches.Batch()
        self.compiled: Any = None  # compiling.Function

    @property
    def is_new(self) -> bool:
        return self.calls < LEARNING_CALLS

    def state_bytes(self) -> tuple[int, int]:
        return self.fed_bytes, self.like_bytes


class Samples:
    """Where the step does not take the batch itself, but gradients: the samples of the function that made them."""

    def __init__(self) -> None:
        self.pending = 0  # since the last step
        self.at_first = 0
        self.direct = False  # what that function returns goes straight to the step: the last call counts

    def add(self, function: Function, samples: int) -> None:
        self.pending = samples if self.direct else self.pending + samples
        self.at_first = self.at_first or function.batch.missed

    def take(self) -> int:
        samples, self.pending = self.pending, 0
        return samples


functions: dict[Any, Function] = {}
step: Function | None = None
apart = Samples()


def forget() -> None:
    global step
    step = None
    apart.__init__()  # type: ignore[misc]
    for function in functions.values():
        function.__init__(function.name, function.code)  # type: ignore[misc]


hook.forget_in_child.append(forget)


def known(compiled: Any) -> Function:
    code = code_of(compiled)
    key = id(compiled if code is None else code)
    function = functions.get(key)
    if function is None:
        name = str(getattr(compiled, "__name__", "") or getattr(code, "co_name", "") or "a compiled function")
        function = functions[key] = Function(name, compiled if code is None else code)
    return function


def code_of(function: Any) -> Any | None:
    """The code of what was compiled, under decorators, functools.partial and methods."""
    for _ in range(16):
        for name in ("__wrapped__", "func", "__func__", "f"):
            inner = getattr(function, name, None)
            if callable(inner):
                function = inner
                break
        else:
            return getattr(function, "__code__", None)
    return None


def before_call(function: Function, thread: Thread, args: Any, kwargs: Any) -> int:
    """Learns from the first calls, and says how many samples this one is given; 0 if unknown."""
    if function.is_new:
        returned = {ident: known for each in functions.values() for ident, known in each.returned.items()}
        function.batch.learn(returned, function.kinds, args, kwargs)
        if function.calls:
            apart.direct = apart.direct or takes_from_another(function, args, kwargs)
            function.fed_bytes = max(function.fed_bytes, bytes_of(again(function.returned, (args, kwargs))))
            if step is None and not is_counted_elsewhere():
                decide(thread)
    return function.batch.samples(args, kwargs)


def takes_from_another(function: Function, args: Any, kwargs: Any) -> bool:
    others = (
        other for other in functions.values() if other is not function and other.like_bytes and other.batch.counter
    )
    return any(again(other.returned, (args, kwargs)) for other in others)


def is_counted_elsewhere() -> bool:
    """Whether an optimizer of torch's steps, or the script's own marks: what is compiled here only serves it."""
    primary = None if state.primary is None else state.primary()
    return primary is not None and not isinstance(primary, Function)


def decide(thread: Thread) -> None:
    """Whether it is known now which function is the step."""
    called = [function for function in functions.values() if function.calls]
    best = max(called, key=Function.state_bytes)
    if best.fed_bytes:
        waits = any(other.calls == 1 and other.like_bytes > best.fed_bytes for other in called if other is not best)
        if not waits or best.calls >= CALLS_TO_WAIT:
            begin_steps(best, thread)
        return
    often = [function for function in called if function.calls >= CALLS_TO_WAIT and function.like_bytes]
    if often:
        begin_steps(max(often, key=Function.state_bytes), thread)


def begin_steps(function: Function, thread: Thread) -> None:
    """Counts the steps that passed before it was known that they are steps."""
    global step
    step = function
    state.primary = weakref.ref(function)
    hook.open()
    ends, function.ends = function.ends, []
    facts.at_first_step(function.returned)
    missed = function.batch.missed + apart.take() if function.batch.counter else apart.at_first
    if ends and missed:
        hook.record(channel.FORWARD, 0, thread.number, ends[0], ends[0], PART_OF_STEP, missed)
    for end in ends:
        if state.counts(function):
            count_step(function, thread, end, end)
    for other in functions.values():
        other.ends = []


def after_call(call: Any, returned: Any, end: int) -> None:
    function, thread = call.function, call.thread
    if function.is_new and returned is not None:
        learn(function, call.given, returned)
    function.calls += 1
    samples = 0
    if function is step:
        samples = apart.take()
        samples = call.samples or samples
    elif function.like_bytes and call.samples:
        apart.add(function, call.samples)
    what = what_of(function)
    hook.record(channel.FORWARD, 0, thread.number, call.begin, end, what, 1 if what == EVALUATION else samples)
    function.at_step = hook.steps
    if returned is None:
        return
    if step is None:
        if function.is_new:
            function.ends.append(end)
    elif is_step(function, thread) and state.counts(function):
        count_step(function, thread, end, end)


def is_step(function: Function, thread: Thread) -> bool:
    """Another function than the step so far may be one as well (two networks), or turn out to be the real one."""
    if is_counted_elsewhere():
        return False
    if function is step or step is None:
        return True
    if function.evaluates or function.state_bytes() < step.state_bytes():
        return False
    if function.fed_bytes > step.fed_bytes:
        begin_steps(function, thread)
    return True


def what_of(function: Function) -> int:
    since = hook.steps - function.at_step
    if since:
        function.evaluates = function is not step and since >= SELDOM
    if function.evaluates:
        return EVALUATION
    return PART_OF_STEP if function is step or function.like_bytes or step is None else OTHER


def learn(function: Function, given: Any, returned: Any) -> None:
    kinds: dict[Any, int] = {}
    for array in arrays_in(given):
        kind = kind_of(array)
        kinds[kind] = kinds.get(kind, 0) + 1
    like = 0
    arrays = arrays_in(returned)
    function.returned = references(arrays)
    for array in arrays:
        kind = kind_of(array)
        function.kinds.add(kind)
        if array.ndim and kinds.get(kind):
            kinds[kind] -= 1
            like += bytes_of([array])
    function.like_bytes = max(function.like_bytes, like)
