"""What a thread is doing while it does not train: what activities.txt says of modules, functions and calls.

C functions have no frame. So three things are looked up, of which the first that is known decides:

    purposes  the library that the user's line called into: what it is for
    waits     Python's own functions that block, by the frames around them
    calls     the function that the innermost line of Python is calling, from its instruction (instructions.py)

A purpose comes before a wait, because a logger that waits for its lock is logging. Whatever is in none of them is
UNKNOWN: a guess would be reported as a finding.
"""

from __future__ import annotations

import os
from typing import Any, NamedTuple

# Activity of src/record/activity.h
UNKNOWN, QUEUE, LOCK, FUTURE, SUBPROCESS, NETWORK, FILE, SLEEP = range(8)
LOGGING, PLOTTING, METRICS, ENVIRONMENT, DATA_PREPARATION, TOKENISING, PYTHON, HOOK, ANOMALY = range(8, 17)
NAMES = """
    unknown queue lock future subprocess network file sleep
    logging plotting metrics environment data_preparation tokenising python hook anomaly
""".split()


class Module(NamedTuple):
    """What the table says of one module."""

    purpose: int
    waits: dict[str, tuple[int, int]]  # function: activity, and what it receives; "*" for all


def _read(path: str) -> dict[str, list[tuple[str, str]]]:
    """The file's sections: pairs of what a name means, and the name."""
    sections: dict[str, list[tuple[str, str]]] = {}
    section, meaning = "", ""
    with open(path, encoding="utf-8") as file:
        for line in file:
            if line.startswith("["):
                section = line.strip("[]\n")
                continue
            if not line.strip() or line.startswith("#"):
                continue
            if not line.startswith(" "):
                meaning, _, line = line.partition(":")
            sections.setdefault(section, []).extend((meaning, name) for name in line.split())
    return sections


_sections = _read(os.path.join(os.path.dirname(os.path.abspath(__file__)), "activities.txt"))


def _pairs(section: str) -> list[tuple[int, str]]:
    return [(NAMES.index(meaning), name) for meaning, name in _sections[section]]


_purposes = {name: activity for activity, name in _pairs("purposes")}
_calls = {name: activity for activity, name in _pairs("calls")}
_waits: dict[str, dict[str, tuple[int, int]]] = {}
for _activity, _name in _pairs("waits"):
    _module, _, _function = _name.rpartition(".")
    _bare = _function.rstrip("*") or "*"
    _waits.setdefault(_module, {})[_bare] = (_activity, len(_function) - len(_bare))

NOTHING = Module(UNKNOWN, {})
SENDS, RECEIVES, FROM_PROCESS = range(3)  # what a wait receives: nothing; something; something of another process
PROCESS_WIDE = 4096  # entries of a cache, before it starts anew
_modules: dict[str, Module] = {}


def _longest(table: dict[str, Any], dotted: str) -> Any:
    """The value under the longest prefix, of whole words, that the table has."""
    while dotted:
        if dotted in table:
            return table[dotted]
        dotted = dotted.rpartition(".")[0]
    return None


def of_module(name: str) -> Module:
    known = _modules.get(name)
    if known is None:
        if len(_modules) >= PROCESS_WIDE:
            _modules.clear()
        purpose, waits = _longest(_purposes, name), _waits.get(name)
        if waits is None:
            every = _longest({m: w for m, w in _waits.items() if "*" in w}, name)
            waits = every or {}
        known = _modules[name] = Module(purpose or UNKNOWN, waits) if purpose or waits else NOTHING
    return known


def of_wait(module: Module, function: str) -> tuple[int, int] | None:
    return module.waits.get(function) or module.waits.get("*")


def of_call(dotted: str) -> int:
    """The activity of a call of "time.sleep", "_io.TextIOWrapper.write", "numpy.ndarray.astype"."""
    found = _longest(_calls, dotted)
    while found is None and dotted:
        dotted = dotted.rpartition(".")[0]
        found = _calls.get(dotted + ".*")
    return found or UNKNOWN
