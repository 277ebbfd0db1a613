"""What a frame is executing, from the instruction it has reached: a call, and of what, or the head of a `for` loop.

Nothing of the script's is run to find out: modules and instances are searched in their dictionaries, past any
`__getattr__` and property. What was found is kept for each place, so that a place is looked at once.
"""

from __future__ import annotations

import dis
import sys
import types
from types import CodeType, FrameType
from typing import Any, NamedTuple

from ..core.frames import variable
from ..core.interrupts import is_the_scripts
from .levels import Level

MAX_CODE_BYTES = 1 << 15  # longer code is generated, and takes milliseconds to go through
MAX_PLACES = 4096
CALLING = {"CALL", "PRECALL", "CALL_KW", "CALL_FUNCTION_EX", "CALL_FUNCTION", "CALL_METHOD", "CALL_FUNCTION_KW"}
MEMBERS = ("LOAD_ATTR", "LOAD_METHOD")
# Operators may be anything on tensors; all other instructions are the interpreter's own work.
OPERATORS = ("BINARY_", "INPLACE_", "UNARY_", "COMPARE_", "CONTAINS_", "STORE_SUBSCR", "SEND", "YIELD")

CALL, LOOP, INDEX, OPERATOR, INTERPRETER = range(5)


class Executing(NamedTuple):
    kind: int
    callee: str = ""  # "time.sleep", "_queue.SimpleQueue.get"; "" where it could not be found
    body: tuple[int, int] = (0, 0)  # of a loop: the offsets of its instructions


_known: dict[tuple[int, int], Executing] = {}
_kept: dict[int, CodeType] = {}  # alive, so that their ids stay theirs


def executing(at: Level) -> Executing:
    code, offset = at.code, at.offset
    known = _known.get((id(code), offset))
    if known is None:
        if len(_known) >= MAX_PLACES:
            _known.clear()
            _kept.clear()
        try:
            known = _look(at.frame, code, offset)
        except Exception as error:  # the script's objects may be anything: then it is not known what is called
            if is_the_scripts(error):
                raise
            known = Executing(OPERATOR)
        if known.kind != CALL or at.frame.f_lasti == offset:  # else what it calls may be another by now
            _known[id(code), offset] = known
            _kept[id(code)] = code
    return known


def _look(frame: FrameType, code: CodeType, offset: int) -> Executing:
    if offset < 0 or len(code.co_code) > MAX_CODE_BYTES:
        return Executing(OPERATOR)
    before: list[Any] = []
    for instruction in dis.get_instructions(code):
        if instruction.offset == offset:
            break
        before.append(instruction)
    else:
        return Executing(OPERATOR)
    name = instruction.opname
    if name == "FOR_ITER":
        return Executing(LOOP, body=(offset, int(instruction.argval)))
    if _enters(before, instruction):
        return Executing(CALL, _resolved(frame, _manager(before), ["__enter__"]))
    if name in CALLING:
        return Executing(CALL, _resolved(frame, _callee(before, instruction), []))
    if name == "BINARY_SUBSCR" or (name == "BINARY_OP" and instruction.argrepr == "[]"):  # the latter since Python 3.14
        return Executing(INDEX)
    return Executing(OPERATOR if name.startswith(OPERATORS) else INTERPRETER)


def _enters(before: list[Any], instruction: Any) -> bool:
    """A `with` block. Since Python 3.14 it is a call of what was loaded for it."""
    if instruction.opname == "BEFORE_WITH":
        return True
    loaded = before[-1] if before else None
    return loaded is not None and loaded.opname == "LOAD_SPECIAL" and loaded.argrepr == "__enter__"


def _manager(before: list[Any]) -> list[Any]:
    """The instructions that load the context manager: the last ones that load anything."""
    chain: list[Any] = []
    for instruction in reversed(before):
        if instruction.opname in ("LOAD_SPECIAL", "COPY", "SWAP"):
            continue
        chain.append(instruction)
        if instruction.opname not in MEMBERS:
            break
    return chain[::-1]


def _callee(before: list[Any], call: Any) -> list[Any]:
    """The instructions that load what is called: they begin in the source where the call begins, and end before it.

    Before Python 3.11 instructions have no columns, and the answer is none.
    """
    chain: list[Any] = []
    at = getattr(call, "positions", None)
    if at is None or at.col_offset is None:
        return []
    for instruction in reversed(before):
        own = instruction.positions
        if own is None or (own.lineno, own.col_offset) != (at.lineno, at.col_offset):
            continue
        if instruction.opname in ("PUSH_NULL", "PRECALL", "CACHE", "NOP"):
            continue
        if (own.end_lineno, own.end_col_offset) == (at.end_lineno, at.end_col_offset):
            continue
        chain.append(instruction)
        if instruction.opname not in MEMBERS:
            break
    return chain[::-1]


def _resolved(frame: FrameType, chain: list[Any], more: list[str]) -> str:
    if not chain:
        return ""
    root, names = chain[0], [str(one.argval) for one in chain[1:]] + more
    found = _root(frame, root.opname, root.argval)
    if found is None:
        return ""
    for name in names[:-1]:
        found = member(found, name)
        if found is None:
            return ""
    return _dotted(found, names[-1]) if names else _name_of(found)


def _root(frame: FrameType, opname: str, name: Any) -> Any:
    if opname in ("LOAD_GLOBAL", "LOAD_NAME"):
        found = frame.f_globals.get(name)
        return found if found is not None else frame.f_builtins.get(name)
    return local(frame, name) if opname.startswith(("LOAD_FAST", "LOAD_DEREF")) and isinstance(name, str) else None


def holds_others() -> bool:
    """Whether other threads stand still while this one runs: not where the interpreter has no lock."""
    return bool(getattr(sys, "_is_gil_enabled", lambda: True)())


def local(frame: FrameType, name: str) -> Any:
    """A local variable of another thread's frame; None where reading it could be noticed, or could crash: without the
    interpreter's lock, `f_locals` of a frame that runs meanwhile is not safe (Python's "free threading" how-to)."""
    return variable(frame, name) if holds_others() else None


def member(of: Any, name: str) -> Any:
    """An attribute of its own; None where there is none."""
    try:
        return object.__getattribute__(of, "__dict__").get(name)
    except AttributeError as error:
        if is_the_scripts(error):
            raise
        return None


def _dotted(of: Any, name: str) -> str:
    if isinstance(of, types.ModuleType):
        return f"{of.__name__}.{name}"
    if isinstance(of, type):
        return f"{of.__module__}.{of.__qualname__}.{name}"
    return f"{type(of).__module__}.{type(of).__qualname__}.{name}"


def _name_of(function: Any) -> str:
    """Of a function or class that a variable holds."""
    owner = getattr(function, "__self__", None) if isinstance(function, types.BuiltinFunctionType) else None
    if owner is not None and not isinstance(owner, types.ModuleType):  # a bound method of a type in C
        kind = owner if isinstance(owner, type) else type(owner)
        if kind.__module__.startswith("torch._C"):
            return f"torch.{function.__name__}"
        return f"{kind.__module__}.{kind.__qualname__}.{function.__name__}"
    if isinstance(function, (types.FunctionType, types.BuiltinFunctionType, type)):
        return f"{function.__module__}.{function.__qualname__}"
    return ""
