"""What is compiled, how often, and why again.

jax.monitoring tells a listener, at its end and on the same thread, of each part of a compilation: tracing, lowering,
compiling. They are recorded inside the call that they hold up. What was different from the last time is found by
comparing the arguments: shapes and types, other values where a value is a constant of the program, or a function that
was wrapped anew.
"""

from __future__ import annotations

import sys
from typing import Any

from ..core import channel
from ..core.compilations import Compiled, count
from ..core.frames import caller_place
from ..core.runtime import clock, hook

EVENTS = "/jax/core/compile/"
LAST = "/jax/core/compile/backend_compile_duration"
LONGEST = 120  # characters of an example


class Function(Compiled):
    """And what it was compiled for last."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.arguments: dict[str, str] | None = None  # in words
        self.owner = 0  # id of the compiled object


class Compilations:
    def __init__(self) -> None:
        self.under_way: dict[int, list[int]] = {}  # thread: [ns, programs] since its call began
        self.of: dict[Any, Compiled] = {}  # of operations outside all functions, by name and place


state = Compilations()
hook.forget_in_child.append(lambda: state.__init__())  # type: ignore[misc]


def listen(event: str, duration: float, **about: Any) -> None:
    """Called by JAX. Must not raise."""
    if not event.startswith(EVENTS) or not hook.on:
        return
    try:
        end = clock()
        ns = int(duration * 1e9)
        thread = hook.here()
        hook.record(channel.OTHER, channel.COMPILATION, thread.number, end - ns, end)
        spent = state.under_way.setdefault(thread.number, [0, 0])
        spent[0] += ns
        spent[1] += event == LAST
        if event == LAST and not thread.in_forward:
            note_operation(str(about.get("fun_name", "an operation")), state.under_way.pop(thread.number))
    except Exception as error:
        if not hook.fail("compilation", error):
            raise


def note_operation(name: str, spent: list[int]) -> None:
    """An operation of jax.numpy, compiled outside all compiled functions."""
    name = name[4:-1] if name.startswith("jit(") else name
    place = caller_place()
    compiled = state.of.get((name, place))
    if compiled is None:
        compiled = state.of[name, place] = Compiled(name)
        compiled.place = place
    count(compiled, spent[0], "shapes")


def after_call(call: Any) -> None:
    """A call of a compiled function ended: notes what was compiled in it."""
    spent = state.under_way.pop(call.thread.number, None) if state.under_way else None
    if spent is None or not spent[1]:
        return
    function = call.function
    if function.compiled is None:
        function.compiled = Function(function.name)
    compiled: Function = function.compiled
    if compiled.place is None:
        compiled.place = caller_place()
    arguments = in_words(call.given)
    reason = ""
    if compiled.arguments is not None:
        reason, example = difference(compiled, arguments, id(call.compiled))
        compiled.example = example or compiled.example
    compiled.arguments, compiled.owner = arguments, id(call.compiled)
    count(compiled, spent[0], reason)


def difference(compiled: Function, arguments: dict[str, str], owner: int) -> tuple[str, str]:
    """(why it was compiled again, an example in words)."""
    before = compiled.arguments or {}
    changed = [name for name in arguments if before.get(name) != arguments[name]]
    for name in changed:
        if "[" in arguments[name]:
            return "shapes", f"{name}: {before.get(name, 'nothing')}, then {arguments[name]}"[:LONGEST]
    if owner != compiled.owner:
        return "new-function", ""
    for name in changed:
        return "constants", f"{name}: {before.get(name, 'nothing')}, then {arguments[name]}"[:LONGEST]
    return "other", ""


def in_words(given: tuple[Any, Any]) -> dict[str, str]:
    """The arguments as the compiler sees them: arrays by type and shape, all else by value."""
    tree_util = sys.modules["jax.tree_util"]
    args, kwargs = given
    words: dict[str, str] = {}
    for name, argument in (*((f"argument {place}", each) for place, each in enumerate(args, 1)), *kwargs.items()):
        leaves = tree_util.tree_leaves(argument)
        for number, leaf in enumerate(leaves):
            key = name if len(leaves) == 1 else f"{name}, array {number + 1}"
            shape, dtype = getattr(leaf, "shape", None), getattr(leaf, "dtype", None)
            if shape is not None and dtype is not None:
                words[key] = f"{dtype}[{','.join(map(str, shape))}]"
            elif isinstance(leaf, (bool, int, float, complex, str, bytes, tuple)):
                words[key] = repr(leaf)[:LONGEST]
            else:
                words[key] = type(leaf).__name__
    return words


def attach(jax: Any) -> None:
    monitoring = getattr(jax, "monitoring", None) or sys.modules.get("jax._src.monitoring")
    if monitoring is None:
        return
    monitoring.register_event_duration_secs_listener(listen)
