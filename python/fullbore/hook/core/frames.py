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
OURS = tuple(
    os.path.join(os.sep, "fullbore", *path)
    for path in (("data", ""), ("runs", ""), ("integrations", ""), ("loops.py",), ("notebook.py",))
)
STANDARD_LIBRARY = os.path.dirname(os.path.abspath(os.__file__))
PACKAGES = (os.sep + "site-packages" + os.sep, os.sep + "dist-packages" + os.sep)
MAX_DEPTH = 200

SHELL = "IPython.core.interactiveshell"
CELL_OF_IPYTHON = "<ipython-input-"  # in a terminal; in a notebook it is a file that does not exist

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
        return name in ("<string>", "<stdin>") or name.startswith(CELL_OF_IPYTHON)  # python -c, and typed in
    path = os.path.abspath(name)
    if any(path.startswith(folder + os.sep) for folder in libraries):
        return False
    return not any(part in path for part in (*PACKAGES, *OURS))


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
    return known_as(code.co_filename)


def known_as(name: str) -> str:
    """As reports have it: the path of a file; "<cell 4>" for a cell of a notebook, by the number beside it."""
    number = cells().get(name)
    if number is not None:
        return f"<cell {number}>"
    return name if name.startswith("<") else os.path.abspath(name)


def cells() -> dict[str, int]:
    """Of the notebook that this process runs: what Python calls each cell's file, and the number that it ran under."""
    shell = getattr(getattr(sys.modules.get(SHELL), "InteractiveShell", None), "_instance", None)
    return getattr(getattr(shell, "compile", None), "_filename_map", None) or {}


def text_of_cell(known: str, line: int) -> str:
    """Of a line in "<cell 4>", which no file holds; "" for all else, which the recorder reads itself."""
    if not known.startswith("<cell "):
        return ""
    with standard_library:
        import linecache

        names = [name for name in cells() if known_as(name) == known]
        return linecache.getline(names[-1], line) if names else ""


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
