"""What a frame is executing, by its instruction, on any Python."""

from __future__ import annotations

import sys

from hook_package import load

instructions = load("sampling.instructions")
levels = load("sampling.levels").levels


def test_an_index_is_known_by_the_instruction():
    class Rows:
        def __getitem__(self, index):
            return instructions.executing(levels(sys._getframe(1))[0]).kind

        def __add__(self, other):
            return instructions.executing(levels(sys._getframe(1))[0]).kind

    assert (Rows()[3], Rows() + 3) == (instructions.INDEX, instructions.OPERATOR)


def test_without_the_interpreters_lock_no_variable_of_a_frame_is_read(monkeypatch):
    def read(kept: int) -> object:
        return instructions.local(sys._getframe(), "kept")

    monkeypatch.setattr(sys, "_is_gil_enabled", lambda: True, raising=False)
    assert read(1) == 1
    monkeypatch.setattr(sys, "_is_gil_enabled", lambda: False, raising=False)
    assert read(1) is None


def test_a_stack_is_where_it_was_whatever_the_thread_does_since():
    def counts():
        yield 1
        yield 2

    counting = counts()
    next(counting)
    (noted,) = levels(counting.gi_frame)
    before = (noted.line, noted.place(), noted.offset)
    assert noted.line == counting.gi_frame.f_lineno
    next(counting)
    assert counting.gi_frame.f_lineno == noted.line + 1, "it has run on"
    assert (noted.line, noted.place(), noted.offset) == before


def test_a_line_is_the_one_that_python_names():
    seen = []

    def calls(depth):
        if depth:
            return calls(
                depth - 1,
            )
        frame = sys._getframe()
        for level in levels(frame):
            seen.append((level.line, level.frame.f_lineno))
        return None

    calls(3)
    assert len(seen) > 4
    assert all(line == named for line, named in seen[1:]), "the innermost has run on"


def test_what_a_frame_calls_is_kept_only_while_it_is_there(monkeypatch):
    monkeypatch.setattr(instructions, "_known", {})
    noted = []

    def note(look):
        noted.append(levels(sys._getframe(1))[0])
        if look:
            instructions.executing(noted[-1])
        return 0

    def calls():
        min([False], key=note)
        assert instructions.executing(noted[0]).kind == instructions.CALL
        assert instructions._known == {}, "it has run on"
        min([True], key=note)
        assert [known.kind for known in instructions._known.values()] == [instructions.CALL]

    calls()
