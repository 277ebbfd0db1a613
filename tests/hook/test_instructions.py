"""What a frame is executing, by its instruction, on any Python."""

from __future__ import annotations

import sys

from hook_package import load

frames = load("core.frames")
instructions = load("sampling.instructions")


def test_an_index_is_known_by_the_instruction():
    class Rows:
        def __getitem__(self, index):
            return instructions.executing(frames.levels(sys._getframe(1))[0]).kind

        def __add__(self, other):
            return instructions.executing(frames.levels(sys._getframe(1))[0]).kind

    assert (Rows()[3], Rows() + 3) == (instructions.INDEX, instructions.OPERATOR)


def test_without_the_interpreters_lock_no_variable_of_a_frame_is_read(monkeypatch):
    def read(kept: int) -> object:
        return instructions.local(sys._getframe(), "kept")

    monkeypatch.setattr(sys, "_is_gil_enabled", lambda: True, raising=False)
    assert read(1) == 1
    monkeypatch.setattr(sys, "_is_gil_enabled", lambda: False, raising=False)
    assert read(1) is None
