"""Which code is the user's own, which of its frames is on a stack, and what variables a frame has.

Variables are read here and nowhere else in the hook: up to Python 3.12 a frame keeps the dictionary that `f_locals`
gives, with everything that was in it, so that a batch would live on after the script has let it go.
"""

from __future__ import annotations

import os
import sys
from types import CodeType, FrameType
from typing import Any

from .library import standard_library

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # the hook
# Wherever they are imported from.
OUR_LOADER = os.sep + os.path.join("fullbore", "data") + os.sep
OUR_MARKS = os.sep + os.path.join("fullbore", "loops.py")
STANDARD_LIBRARY = os.path.dirname(os.path.abspath(os.__file__))
PACKAGES = (os.sep + "site-packages" + os.sep, os.sep + "dist-packages" + os.sep)
MAX_DEPTH = 200

SNAPSHOTS = sys.version_info < (3, 13)  # frame.f_locals is a dictionary that the frame keeps
READS_LOCALS = {"locals", "eval", "exec"}
READS_WITHOUT_ARGUMENT = {"vars", "dir"}
CO_OPTIMIZED = 1
MAX_CODES = 4096

# Folders of libraries that may be imported from elsewhere than PACKAGES: a framework from its own sources.
libraries = [HERE, STANDARD_LIBRARY]
_is_user: dict[str, bool] = {}


def is_library(module: Any) -> None:
    """Whatever lies in this package's folder is not the user's."""
    place = getattr(module, "__file__", None)
    if place:
        libraries.append(os.path.dirname(os.path.abspath(place)))
        _is_user.clear()


def is_user_file(name: str) -> bool:
    """Neither installed, nor Python's, nor generated, nor ours. A script run by `python -m` is the user's, too."""
    known = _is_user.get(name)
    if known is None:
        known = _is_user[name] = _judge(name)
    return known


def _judge(name: str) -> bool:
    if name == getattr(sys.modules.get("__main__"), "__file__", None):
        return True
    if name.startswith("<"):
        return name in ("<string>", "<stdin>")  # python -c, and typed in
    path = os.path.abspath(name)
    if any(path.startswith(folder + os.sep) for folder in libraries):
        return False
    return not any(part in path for part in (*PACKAGES, OUR_LOADER, OUR_MARKS))


def user_frame(frame: FrameType | None) -> FrameType | None:
    """The innermost frame of the user's own code, from this one outwards."""
    for _ in range(MAX_DEPTH):
        if frame is None:
            return None
        if is_user_file(frame.f_code.co_filename):
            return frame
        frame = frame.f_back
    return None


def place(frame: FrameType) -> tuple[str, int]:
    return full_name(frame.f_code), frame.f_lineno


def full_name(code: CodeType) -> str:
    name = code.co_filename
    return name if name.startswith("<") else os.path.abspath(name)


def caller_place() -> tuple[str, int] | None:
    """File and line of the user's code that called into a library, and so into us."""
    frame = user_frame(sys._getframe(1))
    return None if frame is None else place(frame)


def variables(frame: FrameType) -> dict[str, Any]:
    """Its variables by name, for the moment: whoever asks must let go of them before the frame's own thread runs on.

    Empty where reading them could be noticed. Up to Python 3.12 the frame shares its dictionary with the script if that
    calls locals(), and with a debugger; else it is emptied here.
    """
    if not SNAPSHOTS or not frame.f_code.co_flags & CO_OPTIMIZED:  # the latter: of a module or a class, nobody's copy
        return dict(frame.f_locals)
    if frame.f_trace is not None or reads_locals(frame.f_code):
        return {}
    snapshot = frame.f_locals
    try:
        return dict(snapshot)
    finally:
        snapshot.clear()


_reads_locals: dict[int, tuple[CodeType, bool]] = {}  # the code is kept, so that its id stays its own


def reads_locals(code: CodeType) -> bool:
    """Whether it calls what gives its variables as a dictionary; `model.eval()` and `vars(arguments)` do not."""
    if READS_LOCALS.isdisjoint(code.co_names) and READS_WITHOUT_ARGUMENT.isdisjoint(code.co_names):
        return False
    known = _reads_locals.get(id(code))
    if known is None:
        if len(_reads_locals) >= MAX_CODES:
            _reads_locals.clear()
        known = _reads_locals[id(code)] = (code, calls_for_locals(code))
    return known[1]


def calls_for_locals(code: CodeType) -> bool:
    with standard_library:
        import dis

    loaded = ""
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            loaded = str(instruction.argval)
            if loaded in READS_LOCALS:
                return True
        elif instruction.opname not in ("PUSH_NULL", "PRECALL", "CACHE"):
            if loaded in READS_WITHOUT_ARGUMENT and instruction.opname.startswith("CALL") and not instruction.arg:
                return True
            loaded = ""
    return False


def variable(frame: FrameType, name: str) -> Any:
    """One of them, None where there is none."""
    if not frame.f_code.co_flags & CO_OPTIMIZED:
        return frame.f_locals.get(name)
    return variables(frame).get(name)
