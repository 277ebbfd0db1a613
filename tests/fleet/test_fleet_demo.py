"""`make fleet-demo`: the report says what scripts measured of their own planted waste, its edits are made and measured,
and nothing is left behind."""

from __future__ import annotations

import subprocess
import sys
import time

import fleet_demo
import pytest


@pytest.fixture
def demo():
    if fleet_demo.why_not():
        pytest.skip(fleet_demo.why_not())
    command = [sys.executable, fleet_demo.__file__]
    yield lambda **how: subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **how)
    fleet_demo.end_all()


@pytest.mark.rounds  # it compares measured times: on a quiet machine
@pytest.mark.timeout(1800)
def test_the_report_agrees_with_the_scripts_own_clocks_its_edits_are_made_and_nothing_is_left(demo):
    """Also where a demo before this one was killed in the middle."""
    killed = demo()
    until = time.monotonic() + 120
    while "jobs are left" not in killed.stderr.readline():
        assert killed.poll() is None and time.monotonic() < until
    killed.kill()
    killed.wait()
    assert fleet_demo.marked(), "its servers outlive it"
    whole = demo()
    said, log = whole.communicate(timeout=1500)
    assert whole.returncode == 0, said + log
    assert "to the nanosecond: yes" in said
    assert f"{fleet_demo.EDITS} edits are made" in log
    assert "changed" in said
    assert fleet_demo.marked() == []
    assert not fleet_demo.FOLDER.exists()


@pytest.mark.rounds  # on a quiet machine
@pytest.mark.timeout(1800)
def test_the_edits_bring_back_what_was_predicted_within_its_range(demo):
    said, log = demo().communicate(timeout=1500)
    made = [line for line in said.splitlines() if " ms " in line]
    assert len(made) == fleet_demo.EDITS, said + log
    assert all(line.endswith(" held") for line in made), said
