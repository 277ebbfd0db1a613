"""The exam's programs that hold their own cure: what is promised of it, and what counts as right."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import language.run
import pytest
from both.cured import Program, about_the_program, held, is_right, judged, promised
from both.turns import Runner, descendants

LONGEST = {"id": "padding", "fix": ["sort them (64 of 256, 4.66x)", "pad each batch (189 of 256, 1.46x)"]}
SPAN = {"expected": 1.5, "low": 1.2, "high": 2.0}


def program(tmp_path: Path, promise: str = "") -> Program:
    script = tmp_path / "one.py"
    script.write_text(f'"""A model.\n\nCause: padding.\nFix: none of it.\n{promise}"""\n')
    return Program(script, ("padding",), sys.executable)


def test_of_the_first_advice_the_range_is_promised(tmp_path):
    finding = {**LONGEST, "speedup": SPAN}
    assert promised(program(tmp_path), finding) == SPAN
    assert promised(program(tmp_path, "Promise: sort them\n"), finding) == SPAN


def test_of_another_advice_what_its_sentence_expects(tmp_path):
    finding = {**LONGEST, "speedup": SPAN}
    assert promised(program(tmp_path, "Promise: pad each batch\n"), finding) == {"expected": 1.46}
    assert promised(program(tmp_path, "Promise: none\n"), finding) is None


def test_what_is_said_of_other_programs_is_not_the_first_finding(tmp_path):
    contended = {"id": "cpu-contention", "title": "", "fix": []}
    report = {"findings": [contended, {**LONGEST, "title": "", "speedup": SPAN}]}
    assert judged(program(tmp_path), report)["place"] == 0
    assert about_the_program([contended]) == [contended], "unless nothing else is said"


@pytest.mark.parametrize(("gain", "keeps"), [(1.1, False), (1.3, True), (2.1, False)])
def test_a_range_holds_a_gain_within_it(gain, keeps):
    assert held({"promised": SPAN, "gain": gain}) is keeps
    assert held({"promised": {"expected": 1.46}, "gain": gain}) is None


def test_silence_is_right_where_the_cure_brings_nothing():
    silent = {"place": None, "findings": [{"id": "healthy"}]}
    assert is_right({**silent, "gain": 1.02})
    assert not is_right({**silent, "gain": 1.3})


def test_a_rate_counts_the_steps_of_all_turns_and_their_time_alone(tmp_path):
    steps = tmp_path / "steps"
    steps.write_text("9.5 7\n10.2 4\n20.5 6\n21.5 5\n21.9")
    runner = Runner(None, steps, tmp_path / "output", [(10.0, 11.0), (20.0, 21.0)])
    assert runner.rate() == 5.0, "what came before, what came after, and half a line do not count"


def test_a_process_stands_with_all_that_it_started():
    inner = "import subprocess; subprocess.run(['sleep', '60'], start_new_session=True)"
    outer = subprocess.Popen([sys.executable, "-c", inner])
    try:
        family = set()
        while len(family) < 2:
            family = set(descendants(outer.pid))
    finally:
        for pid in set(descendants(outer.pid)):
            os.kill(pid, signal.SIGKILL)
        outer.wait()


def test_each_program_says_its_cause_and_its_fix():
    for one in language.run.programs([], sys.executable):
        assert one.said("Cause"), one.name
        assert one.said("Fix"), one.name
        assert "opts.fixed" in one.script.read_text(), one.name
