"""The hot path in C++ (src/hook), where this Python can load it; every other Python takes the same steps in Python.

The extension lies beside this file where Fullbore is installed, and in the build tree's copy of the package where it
was built. `FULLBORE_HOOK_NATIVE=0` does without it; a directory in that variable is where it is looked for instead.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
from typing import Any

from .interrupts import is_the_scripts

VARIABLE = "FULLBORE_HOOK_NATIVE"
INTERFACE = 4  # of src/hook/module.cc: an extension built from other sources is not used


def places() -> list[str]:
    asked = os.environ.get(VARIABLE)
    if asked:
        return [asked]
    package = os.environ.get("FULLBORE_PACKAGE")  # set by `fullbore run`
    beside = os.path.dirname(os.path.abspath(__file__))
    return [beside, os.path.join(package, "fullbore", "hook", "core")] if package else [beside]


def find() -> str:
    """The file that this Python's own import would choose: a free-threaded one knows no `.abi3.so`."""
    for place in places():
        for suffix in importlib.machinery.EXTENSION_SUFFIXES:
            path = os.path.join(place, "_native" + suffix)
            if os.path.exists(path):
                return path
    return ""


def load() -> tuple[Any, str]:
    """The extension, or None and why there is none. Never raises."""
    try:
        if os.environ.get(VARIABLE) == "0":
            return None, f"{VARIABLE}=0"
        path = find()
        if not path:
            return None, "no extension for this Python beside the hook"
        spec = importlib.util.spec_from_file_location((__package__ or "core") + "._native", path)
        found = importlib.util.module_from_spec(spec)  # type: ignore[arg-type]
        spec.loader.exec_module(found)  # type: ignore[union-attr]
        if found.INTERFACE != INTERFACE:
            return None, f"{path} was built from other sources"
        return found, path
    except Exception as error:
        if is_the_scripts(error):
            raise
        return None, f"{type(error).__name__}: {error}"


extension, reason = load()
PATH = "python" if extension is None else "native"
