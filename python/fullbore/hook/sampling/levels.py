"""A thread's stack as it was at one moment.

The thread may run on while its stack is looked at: it gets the interpreter's lock back after as short a time as the
sampler took to get it (lines.come_unexpected), and reading a stack takes longer. So where each frame was is noted at
once, and everything else is found out from that.
"""

from __future__ import annotations

import dis
from collections.abc import Iterable
from types import CodeType, FrameType
from typing import NamedTuple

from ..core.frames import MAX_DEPTH, full_name, is_user_file

MAX_LINES = 4096
DEPTH = range(MAX_DEPTH)


class Level(NamedTuple):
    """A frame, and where it was."""

    frame: FrameType
    offset: int  # of the instruction, in bytes

    @property
    def code(self) -> CodeType:
        return self.frame.f_code

    @property
    def line(self) -> int:
        return line_of(self.code, self.offset)

    def place(self) -> tuple[str, int]:
        return full_name(self.code), self.line


def levels(frame: FrameType | None) -> list[Level]:
    """From this frame outwards, at most MAX_DEPTH."""
    noted = []
    for _ in DEPTH:
        if frame is None:
            break
        noted.append((frame, frame.f_lasti))
        frame = frame.f_back
    return [Level(*each) for each in noted]


def innermost_of_user(stack: Iterable[Level]) -> Level | None:
    return next((at for at in stack if is_user_file(at.code.co_filename)), None)


_lines: dict[tuple[int, int], tuple[CodeType, int]] = {}  # the code is kept, so that its id stays its own


def line_of(code: CodeType, offset: int) -> int:
    known = _lines.get((id(code), offset))
    if known is None:
        if len(_lines) >= MAX_LINES:
            _lines.clear()
        line = code.co_firstlineno
        for start, number in dis.findlinestarts(code):
            if start > offset:
                break
            line = number or line
        known = _lines[id(code), offset] = (code, line)
    return known[1]
