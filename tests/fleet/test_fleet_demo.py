"""`make fleet-demo`: the report says what scripts measured of their own planted waste, and nothing is left behind."""

from __future__ import annotations

import subprocess
import sys
import time

import fleet_demo
import pytest

pytestmark = [pytest.mark.long, pytest.mark.alone]


@pytest.fixture
def demo():
    if fleet_demo.why_not():
        pytest.skip(fleet_demo.why_not())
    command = [sys.executable, fleet_demo.__file__]
    yield lambda **how: subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **how)
    fleet_demo.end_all()


@pytest.mark.timeout(1800)
def test_the_report_agrees_with_the_scripts_own_clocks_and_nothing_is_left(demo):
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
    assert fleet_demo.marked() == []
    assert not fleet_demo.FOLDER.exists()
