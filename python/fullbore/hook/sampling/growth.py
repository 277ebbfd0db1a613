"""What grows in the script while its memory does: containers that each step adds to, and sums that keep their graphs.

Looked at every few seconds, and only once the process has grown: after a step and on the training's own thread, where
nothing that is looked at can outlive the script's last reference to it. It sees what that thread's code can name:
variables of its frames and modules, and attributes of the user's objects among them, two levels deep. What the script
does with them it does not see, so a container is named only if it was longer at each look.
"""

from __future__ import annotations

import linecache
import os
import re
import sys
import time
from collections import deque
from collections.abc import Iterator
from types import FrameType, ModuleType
from typing import Any, NamedTuple

from ..core.files import Kept
from ..core.frames import CO_OPTIMIZED, MAX_DEPTH, is_user_file, known_as
from ..core.frames import variables as variables_of
from ..core.interrupts import is_the_scripts
from ..core.library import standard_library
from ..core.runtime import clock, hook
from .instructions import holds_others

LOOK_S, RARELY_S, RARER = 2.0, 60.0, 1.2  # between looks: at first, at most, and by how much more each time
GREW_BYTES = 16 << 20  # half of what the finding memory-growth needs
LOOKS = 3  # a container that was longer at each of so many looks in a row grows
MOST_NAMED, MOST_SEEN, MOST_LINES = 3, 2000, 20000
CHAIN = 64  # additions in a row: a sum over that many steps
CONTAINERS = (list, dict, set, deque)
PAGE = os.sysconf("SC_PAGE_SIZE")


class Seen(NamedTuple):
    name: str  # as the user would write it: "self.history"
    size: int
    holds: str
    file: str
    first_line: int  # of the code that it is a variable of


class Grown:
    """One container over the looks."""

    __slots__ = ("first", "last", "steps", "rises")

    def __init__(self, seen: Seen) -> None:
        self.first = self.last = seen.size
        self.steps = hook.steps
        self.rises = 0

    def note(self, size: int) -> None:
        self.rises = self.rises + 1 if size > self.last else 0
        self.last = size


class Growth:
    def __init__(self) -> None:
        self.period_s = LOOK_S
        # Without the interpreter's lock, what is looked at changes meanwhile.
        self.next_look = time.monotonic() + LOOK_S if holds_others() else float("inf")
        self.least_bytes = 0
        self.known: dict[tuple[int, str], Grown] = {}
        self.statm = open_statm()

    def is_due(self) -> bool:
        return time.monotonic() >= self.next_look

    def look(self, frame: FrameType) -> None:
        """Called on the training thread, with its frame; returns at once unless it is time. What a script keeps in its
        variables may be anything, and a look that fails was the last one."""
        if not self.is_due():
            return
        begin = clock()
        self.next_look = time.monotonic() + self.period_s
        self.period_s = min(RARELY_S, self.period_s * RARER)
        try:
            self.compare(frame)
        except Exception as error:
            if is_the_scripts(error):
                raise
            self.next_look = float("inf")
        hook.extra_ns += clock() - begin

    def close(self) -> None:
        """In a forked child, of which the parent's file says nothing."""
        if self.statm is not None:
            self.statm.close()

    def compare(self, frame: FrameType) -> None:
        used = resident_bytes(self.statm)
        self.least_bytes = min(self.least_bytes or used, used)
        if used - self.least_bytes < GREW_BYTES:
            return
        growing = []
        for key, seen in variables(frame):
            grown = self.known.get(key)
            if grown is None:
                self.known[key] = Grown(seen)
                continue
            grown.note(seen.size)
            if grown.rises >= LOOKS:
                growing.append((grown, seen))
        growing.sort(key=lambda each: (each[1].holds != "", each[0].last - each[0].first), reverse=True)
        if growing:
            hook.fact("growing", [described(*each) for each in growing[:MOST_NAMED]])


def open_statm() -> Kept | None:
    try:
        return Kept.open_for_reading("/proc/self/statm")
    except OSError as error:
        if is_the_scripts(error):
            raise
        return None


def resident_bytes(statm: Kept | None) -> int:
    """proc(5): the second figure of statm is in pages."""
    try:
        return 0 if statm is None else int(statm.read(80).split()[1]) * PAGE
    except (OSError, IndexError, ValueError) as error:
        if is_the_scripts(error):
            raise
        return 0


def described(grown: Grown, seen: Seen) -> dict[str, Any]:
    return {
        "name": seen.name,
        "from": grown.first,
        "to": grown.last,
        "steps": hook.steps - grown.steps,
        "holds": seen.holds,
        "file": known_as(seen.file),
        "line": line_that_adds(seen),
    }


def variables(frame: FrameType) -> Iterator[tuple[tuple[int, str], Seen]]:
    """Containers and sums that the user's code on this stack can name, each once, by where and how it is named."""
    met: set[int] = set()
    spaces: set[int] = set()
    left = MOST_SEEN
    for _ in range(MAX_DEPTH):
        if frame is None:
            return
        code = frame.f_code
        if is_user_file(code.co_filename):
            for space, first_line in ((locals_of(frame), code.co_firstlineno), (frame.f_globals, 1)):
                if space is frame.f_globals and id(space) in spaces:
                    continue
                spaces.add(id(space))
                for path, value in named(space):
                    left -= 1
                    if left < 0:
                        return
                    seen = measured(path, value, code.co_filename, first_line)
                    if seen is not None and id(value) not in met:
                        met.add(id(value))
                        yield (id(space if space is frame.f_globals else code), path), seen
        frame = frame.f_back  # type: ignore[assignment]


def locals_of(frame: FrameType) -> dict[str, Any]:
    """Of a module, the module's own."""
    return variables_of(frame) if frame.f_code.co_flags & CO_OPTIMIZED else frame.f_globals


def named(space: Any, depth: int = 2) -> Iterator[tuple[str, Any]]:
    for name, value in list(space.items()):
        if not isinstance(name, str) or name.startswith("__") or isinstance(value, (type, ModuleType)):
            continue
        yield name, value
        attributes = attributes_of(value) if depth > 1 and is_of_the_user(value) else {}
        if attributes:
            for path, inner in named(attributes, depth - 1):
                yield f"{name}.{path}", inner


def attributes_of(value: Any) -> dict[str, Any]:
    """Without running code of the object's class."""
    try:
        return object.__getattribute__(value, "__dict__")
    except AttributeError as error:
        if is_the_scripts(error):
            raise
        return {}


def is_of_the_user(value: Any) -> bool:
    module = sys.modules.get(type(value).__module__)
    return is_user_file(getattr(module, "__file__", None) or "<built-in>")


def measured(path: str, value: Any, file: str, first_line: int) -> Seen | None:
    if type(value) in CONTAINERS:  # no subclass: its methods would be the script's code
        return Seen(path, len(value), held(value), file, first_line)
    if is_tensor(value) and value.grad_fn is not None:
        length = chain(value.grad_fn)
        return Seen(path, length, "a sum that keeps the graph of each step", file, first_line) if length else None
    return None


def is_tensor(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def held(container: Any) -> str:
    """What its newest element is; empty for anything without a tensor."""
    try:
        if isinstance(container, dict):
            element = container[next(reversed(container))]
        elif isinstance(container, set):
            element = next(iter(container))
        else:
            element = container[-1]
    except (LookupError, StopIteration, RuntimeError) as error:
        if is_the_scripts(error):
            raise
        return ""
    inside = element if isinstance(element, (tuple, list)) else (element,)
    tensors = [each for each in inside if is_tensor(each)]
    if any(each.grad_fn is not None for each in tensors):
        return "tensors that keep their graphs"
    return "tensors" if tensors else ""


def chain(node: Any) -> int:
    """How many additions hang on each other: `total += loss` makes one more in each step. 0 if they are few."""
    length = 0
    while node is not None and length < MOST_LINES and "AddBackward" in type(node).__name__:
        following = node.next_functions
        node = following[0][0] if following else None
        length += 1
    return length if length >= CHAIN else 0


def line_that_adds(seen: Seen) -> int:
    """The first line that adds something to it, by its text; of the code that it is a variable of, if none does."""
    leaf = re.escape(seen.name.rpartition(".")[2])
    adds = re.compile(
        rf"\b{leaf}\s*(\.(append|appendleft|add|extend|update|insert|setdefault)\(|\[[^=]*\]\s*=[^=]|\s*\+=)"
        rf"|\b{leaf}\s*=\s*{leaf}\s*\+"
    )
    with standard_library:  # linecache imports while it reads, too
        lines = linecache.getlines(seen.file)[:MOST_LINES]
    for number, line in enumerate(lines, 1):
        if adds.search(line):
            return number
    return seen.first_line
