"""Golden runs: a recorded run in, its report out, to the last figure.

Each tests/golden/NAME.fbr is a small run that `fullbore run` recorded; NAME.json is the correct report for it. If a
change of the diagnosis is intended, `scripts/update_goldens.sh` regenerates the reports, and the diff shows what the
change does to real runs.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent
BINARY = HERE.parents[1] / "build" / "release" / "fullbore"
RUNS = sorted(path.stem for path in HERE.glob("*.fbr"))


def report(run: Path) -> dict:
    out = subprocess.run([BINARY, "explain", run, "--json", "-"], capture_output=True, text=True, check=True)
    found = json.loads(out.stdout)
    found["source"] = run.name  # the path depends on where the clone is
    return found


def test_there_are_golden_runs():
    assert RUNS


@pytest.mark.parametrize("name", RUNS)
def test_a_recorded_run_still_gives_the_same_report(name):
    assert report(HERE / f"{name}.fbr") == json.loads((HERE / f"{name}.json").read_text())
