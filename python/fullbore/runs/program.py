"""The program `fullbore`, whose output is all that this package knows of runs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sysconfig
from collections.abc import Iterator

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
VARIABLE = "FULLBORE_PROGRAM"
NAME = "fullbore"


class FullboreError(Exception):
    """What the program says when it could not do something. `hint` is the next step; empty where there is none."""

    def __init__(self, text: str, hint: str = "") -> None:
        super().__init__(f"{text}\nhint: {hint}" if hint else text)
        self.hint = hint


def places() -> Iterator[str]:
    """Where it may be, the nearest first: one program is installed with this package."""
    yield os.environ.get(VARIABLE, "")
    yield os.path.join(PACKAGE, "..", "..", NAME)  # in a build tree
    yield os.path.join(PACKAGE, "..", "..", "..", "..", "bin", NAME)  # below share/fullbore/python
    yield os.path.join(sysconfig.get_path("scripts"), NAME)  # of a wheel
    yield shutil.which(NAME) or ""


def find() -> str:
    for place in places():
        if os.path.isfile(place) and os.access(place, os.X_OK):
            return os.path.normpath(place)
    raise FullboreError("the program fullbore is not installed beside this package", f"set {VARIABLE} to its path")


def call(*arguments: str | os.PathLike[str]) -> str:
    """What it writes to its standard output. Raises FullboreError where it fails."""
    done = subprocess.run([find(), *map(os.fspath, arguments)], stdin=subprocess.DEVNULL, capture_output=True)
    if done.returncode != 0:
        raise error_in(done.stderr)
    return done.stdout.decode(errors="replace")


def error_in(said: bytes) -> FullboreError:
    """Of "fullbore: what failed" and "hint: what to do", a line each."""
    text, _, hint = said.decode(errors="replace").strip().removeprefix(f"{NAME}: ").partition("\nhint: ")
    return FullboreError(text or "the program fullbore ended without a word", hint)
