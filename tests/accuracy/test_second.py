"""The second simulator: it agrees with paper, a seed is a seed, and predictions for its pairs are judged by gains."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from second.examine import score
from second.make import make
from second.run import markdown

CHECKS = Path(__file__).resolve().parents[2] / "bench" / "accuracy" / "second" / "checks.py"


def a_result(**changed) -> dict:
    predicted = {"expected": 1.25, "low": 1.1, "high": 1.4}
    result = {
        **{"case": "1", "cure": "pin", "device": "A100", "ranks": 1, "family": "cnn", "about": ""},
        **{"findings": [{"id": "copy-bound"}], "conditions": [], "judgeable": True},
        **{"steps": 2, "warmup_steps": 1, "step_ns": 100.0, "prediction": predicted},
        "true": {"step_times_ns": [300, 100, 100], "gain": 1.5},
    }
    return {**result, **changed}


@pytest.mark.long
def test_it_agrees_with_paper():
    done = subprocess.run([sys.executable, CHECKS], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


@pytest.mark.long
def test_a_seed_gives_the_same_files_each_time(tmp_path):
    folders = [tmp_path / "one", tmp_path / "other"]
    for folder in folders:
        folder.mkdir()
        make(21, folder)
    one, other = ({path.name: path.read_bytes() for path in folder.iterdir()} for folder in folders)
    assert one == other
    assert json.loads(one["truth.json"])["cure"]


def test_a_gain_above_the_range_was_predicted_too_small():
    judged = score(a_result())
    assert judged.error == pytest.approx(1.5 / 1.25 - 1)
    assert judged.in_range is False
    assert judged.step_error == 0


def test_a_healthy_pair_has_no_gain_to_predict():
    healthy = a_result(cure="", true={"step_times_ns": [300, 100, 100]})
    assert score(healthy).error is None
    assert "| all | 2 | 20.0 / 20.0 % | 0 of 1" in markdown([a_result(), {**healthy, "case": "3"}], "both")


def test_what_is_not_predicted_is_counted():
    assert "| all | 1 | - | - | - | 1 |" in markdown([a_result(prediction=None)], "odd")
