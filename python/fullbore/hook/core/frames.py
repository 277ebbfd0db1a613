"""Which code is the user's own, and which of its frames is on a stack."""

from __future__ import annotations

import os
import sys
from types import FrameType
from typing import Any

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # the hook
# Wherever they are imported from.
OUR_LOADER = os.sep + os.path.join("fullbore", "data") + os.sep
OUR_MARKS = os.sep + os.path.join("fullbore", "loops.py")
STANDARD_LIBRARY = os.path.dirname(os.path.abspath(os.__file__))
PACKAGES = (os.sep + "site-packages" + os.sep, os.sep + "dist-packages" + os.sep)
MAX_DEPTH = 200

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
    name = frame.f_code.co_filename
    return (name if name.startswith("<") else os.path.abspath(name)), frame.f_lineno


def caller_place() -> tuple[str, int] | None:
    """File and line of the user's code that called into a library, and so into us."""
    frame = user_frame(sys._getframe(1))
    return None if frame is None else place(frame)
