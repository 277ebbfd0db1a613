"""Planted causes in trainings that run without us: `explain --pid` finds what `run` finds. The table of all cases is
printed by bench/accuracy/attached.py; here is one whose loop's own iterator holds it up."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import median

import jsonschema
import pytest
from planted_case import ROOT, Case, Laboratory, all_cases

pytestmark = [pytest.mark.alone, pytest.mark.long]
ROUNDS = 3
SECONDS = 5
WITHIN = 0.10  # 7 points, and what five seconds' samples do not tell
CASES = [case for case in all_cases() if case.name == "own_generator"]


@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in CASES])
def test_a_training_that_runs_already_is_told_the_same(case: Case, laboratory: Laboratory) -> None:
    pytest.importorskip("torch")
    run = laboratory.run(case).report
    attached = [laboratory.attach(case, SECONDS) for _ in range(ROUNDS)]
    firsts = [report["findings"][0]["id"] for report in attached]
    assert sum(first == run["findings"][0]["id"] for first in firsts) > ROUNDS // 2, firsts
    for share in ("data_wait", "backward"):
        told = median(report["step_time"]["shares"].get(share, 0) for report in attached)
        assert abs(told - run["step_time"]["shares"].get(share, 0)) <= WITHIN, (share, told, run["step_time"])
    schema = json.loads(Path(ROOT / "docs/report.schema.json").read_text())
    for report in attached:
        jsonschema.validate(report, schema)
        assert report["window"]["steps"] == 0 and "throughput" not in report
        assert 0 < report["window"]["sampled"]["points"] < 0.5
        assert "steps and samples per second" in [note["id"] for note in report["not_judged"]]
