"""What `make fleet-demo` makes of the report's edits: arguments of the planted scripts, and an honest comparison."""

from __future__ import annotations

import json

import fleet_cures
import pytest

PREDICTED = {"low": 1.4, "expected": 1.5, "high": 1.6}


def edit(cause: str, change: str = "") -> dict:
    return {"finding": "", "cause": cause, "change": change}


@pytest.mark.parametrize(
    "case, recommended, argument",
    [
        ("no_workers", edit("no-workers", "DataLoader(num_workers=2)"), "--num-workers 2"),
        ("validation", edit("validation"), "--every 40"),
        ("validation", edit("loop-code"), ""),  # names something else
        ("storage", edit("too-few-workers", "DataLoader(num_workers=2)"), ""),  # the script takes no number of workers
    ],
)
def test_an_edit_is_made_only_where_the_script_takes_what_it_recommends(case, recommended, argument):
    assert fleet_cures.argument(case, recommended) == argument


@pytest.mark.parametrize("case, cause", fleet_cures.ARGUMENTS)
def test_the_scripts_have_the_arguments(case, cause):
    script = (fleet_cures.CASES / f"{case}.py").read_text()
    assert f'"{fleet_cures.ARGUMENTS[case, cause].split()[0]}"' in script


def test_a_steps_time_is_that_of_whole_periods_after_the_warm_up(tmp_path):
    seconds = [9.0] * 7 + [0.5] * 3 + ([0.1] * (fleet_cures.PERIOD - 1) + [4.1]) * 2
    (tmp_path / "truth.json").write_text(json.dumps({"steps": [{"wall": wall} for wall in seconds]}))
    assert fleet_cures.step_s(tmp_path / "truth.json", warmup=7) == pytest.approx(0.2)


def test_the_gain_is_the_median_of_pairs_that_ran_one_after_the_other():
    gain = fleet_cures.gain_of([1.0, 2.0, 3.0], [1.0, 1.0, 1.0])
    assert gain == {"low": 1.0, "expected": 2.0, "high": 3.0}


@pytest.mark.parametrize(
    "after_s, outcome",
    [
        (0.66, "held"),
        (0.80, "the measured gain is below the prediction"),
        (0.50, "the measured gain is above the prediction"),
    ],
)
def test_what_was_predicted_holds_if_the_median_is_in_its_range(after_s, outcome):
    row = fleet_cures.row("mail: validation --every 40", [1.0] * 3, [after_s] * 3, PREDICTED)
    assert row.endswith(outcome)
