"""Exceptions that are caught in the hook and are not its own.

Python runs the function that a script registered for a signal between any two instructions of the main thread: also
while the hook's code runs. What that function raises, a timeout, is meant for the script, and so is what a debugger's
or a tracer's function raises, and what another thread sends. Therefore every `except` of the hook begins with

    if is_the_scripts(error):
        raise

or with `hook.fail`, which says the same. A bare `raise`: it leaves no frame of ours in the traceback, and no cycle that
would keep the script's frames, and the tensors in them, alive.
"""

from __future__ import annotations

import _signal
import os
import sys
from types import CodeType, FrameType, TracebackType
from typing import Any

from .frames import HERE, is_user_file, variables

OURS = HERE + os.sep
CO_VARARGS = 4


def is_the_scripts(error: BaseException) -> bool:
    """Whether it was raised by something else than what the hook did. Never raises."""
    if not isinstance(error, Exception):
        return True  # Ctrl-C, an exit
    at, met_user = error.__traceback__, False
    handlers: set[CodeType] | None = None
    while at is not None:
        name = at.tb_frame.f_code.co_filename
        if not name.startswith(OURS):
            if handlers is None:
                handlers = codes_of_handlers()
            if at.tb_frame.f_code in handlers or was_handed_its_caller(at):
                return True
            met_user = met_user or is_user_file(name)
        at = at.tb_next
    # A class of the script's, raised where none of its code ran: sent by another thread (PyThreadState_SetAsyncExc).
    return not met_user and error.__traceback__ is not None and is_users_class(type(error))


def codes_of_handlers() -> set[CodeType]:
    """Of the functions that the script registered for signals."""
    codes: set[CodeType] = set()
    for number in _signal.valid_signals():
        handler: Any = _signal.getsignal(number)
        while type(handler).__name__ == "partial":
            handler = handler.func
        for function in (handler, vars(type(handler)).get("__call__")):
            code = getattr(getattr(function, "__func__", function), "__code__", None)
            if isinstance(code, CodeType):
                codes.add(code)
    return codes


def was_handed_its_caller(at: TracebackType) -> bool:
    """Whether this function was called as a signal's is, with (number, frame), or as a tracer's, with (frame, event,
    argument). The hook hands its frames to nobody else's code."""
    code = at.tb_frame.f_code
    named = code.co_argcount + code.co_kwonlyargcount
    if named < 2 and not code.co_flags & CO_VARARGS:
        return False
    known = variables(at.tb_frame)
    given = [known.get(name) for name in code.co_varnames[:named]]
    if code.co_flags & CO_VARARGS:
        given.extend(known.get(code.co_varnames[named]) or ())
    for first, second in zip(given, given[1:]):
        if isinstance(second, FrameType) and isinstance(first, int):
            return True
        if isinstance(first, FrameType) and isinstance(second, str):
            return True
    return False


def is_users_class(kind: type) -> bool:
    module = sys.modules.get(kind.__module__)
    if module is None or kind.__module__ == "builtins":
        return False
    return is_user_file(getattr(module, "__file__", None) or ("<string>" if kind.__module__ == "__main__" else "<c>"))
