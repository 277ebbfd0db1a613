"""Metrics that the script prints: "loss=0.41", "loss: 0.41", {'loss': 0.41}, "loss 0.41".

What is printed goes where it went: standard output stays the object that it was, and its `write` looks at each line
afterwards, as long as that costs a small part of the time. A number counts where it has a decimal point or an exponent,
and its name comes for the second time: what is printed once is a setting.
"""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Iterator
from typing import Any

from ..core.interrupts import is_the_scripts
from ..core.runtime import clock, get_ident, guarded, hook
from . import logged
from .loggers import INSIDE

LOGGER = "print"
LONGEST = 300  # characters; a longer line is a table or a dump
TOO_LONG = " " * (LONGEST + 1)
MOST_AT_ONCE = 20_000  # characters; of a longer text, a dump, only the end is looked at
MOST_NAMES = 1000  # printed once
# Of the time since the first line: what it may cost to look at lines, and what at once. Those beyond are not looked at.
BUDGET, BURST_NS = 0.005, 50_000_000
OF = r"(?:(?:train|training|val|valid|validation|test|eval)[ _/-])?"  # "train loss 0.41, val loss 0.52"
NAME = rf"""(?:(?<![\w'"./-])["']?({OF}[A-Za-z][\w./-]{{0,40}})["']?\s*[=:]|\b({OF}\w{{0,20}}loss))\s*"""
NUMBER = r"([-+]?(?:\d+\.\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?|\d+[eE][-+]?\d+)|nan|[-+]?inf)(?=[\s,;|)\]}%]|$)"
METRIC = re.compile(NAME + NUMBER)
STEP = re.compile(r"\b(?:step|global_step|iter|iteration)\b['\"]?\s*[=:]?\s*(\d{1,15})\b", re.IGNORECASE)


class Printed:
    def __init__(self) -> None:
        self.begun = ""  # of the line that is not over yet
        self.once: set[str] = set()
        self.since = self.spent_ns = self.pauses_until = 0

    def note(self, text: str) -> None:
        """A line may come in pieces, as print() writes its arguments, and in the midst of another thread's."""
        if self.pauses_until and clock() < self.pauses_until:
            self.begun = TOO_LONG  # whatever is left of that line
            return
        if len(text) > MOST_AT_ONCE:
            text = "\n" + text[-MOST_AT_ONCE:].partition("\n")[2]
        if "\n" not in text:
            self.begun = (self.begun + text)[: LONGEST + 1]
            return
        head, *lines = text.split("\n")
        lines.insert(0, self.begun + head)
        self.begun = lines.pop()[: LONGEST + 1]
        for line in lines:
            if len(line) <= LONGEST and "\r" not in line:  # a progress bar says everything many times
                if "=" in line or ":" in line or "loss" in line:
                    self.note_in_time(line)

    def note_in_time(self, line: str) -> None:
        begin = clock()
        if begin < self.pauses_until:
            return
        self.note_line(line)
        self.since = self.since or begin
        self.spent_ns += clock() - begin
        self.pauses_until = self.since + int((self.spent_ns - BURST_NS) / BUDGET)

    def note_line(self, line: str) -> None:
        metrics = {name: value for name, value in metrics_in(line) if self.is_repeated(name)}
        if metrics:
            step = STEP.search(line)
            logged.take(LOGGER, metrics.items(), None if step is None else int(step.group(1)))

    def is_repeated(self, name: str) -> bool:
        if name in self.once or name in logged.logged.metrics:
            return True
        if len(self.once) < MOST_NAMES:
            self.once.add(name)
        return False


def metrics_in(line: str) -> Iterator[tuple[str, float]]:
    for found in METRIC.finditer(line):
        yield found.group(1) or found.group(2), float(found.group(3))


printed = Printed()
hook.forget_in_child.append(lambda: printed.__init__())  # type: ignore[misc]


@guarded
def note(text: Any) -> None:
    if type(text) is str and get_ident() not in INSIDE:  # a trainer prints what it logs
        printed.note(text)


def attach() -> None:
    """Where standard output is what Python makes of it; a notebook's is not."""
    stream = sys.stdout
    if type(stream) is not io.TextIOWrapper or "write" in vars(stream):
        return
    write = stream.write

    def written(text: str) -> int:
        count = write(text)
        if hook.on and hook.channel is not None:
            note(text)
        return count

    try:
        stream.write = written  # type: ignore[method-assign]
    except AttributeError as error:
        if is_the_scripts(error):
            raise
        return
    logged.attach()
