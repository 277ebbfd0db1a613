"""Planted causes: training scripts with one thing wrong each, whose first finding must name it, and cost it as the
script's own clock does.
"""

from __future__ import annotations

import re

import pytest
from planted_case import Case, Laboratory, all_cases

CASES = all_cases()
WITHIN = 0.05  # of the step: how far the reported share may be from what the script measured
WARMUP_WITHIN = 3  # steps


def named(cases: list[Case]) -> list:
    return [pytest.param(case, id=case.name) for case in cases]


@pytest.mark.parametrize("case", named(CASES))
def test_names_what_was_planted_first_and_what_it_costs(case: Case, laboratory: Laboratory) -> None:
    if case.missing():
        pytest.skip(case.missing())
    outcome = laboratory.run(case)
    first, warmup = outcome.first, outcome.warmup
    said = f"{first['id']} {first.get('cause', '')}".strip()
    assert said == case["EXPECT"], outcome.says()
    assert outcome.report["window"]["steps"] == len(outcome.truth.steps) - warmup
    if case["TRUTH"]:
        assert first["share"] == pytest.approx(outcome.truth.share(case["TRUTH"], warmup), abs=WITHIN), outcome.says()
    if case["LINE"]:
        place = first["where"][0]
        assert place["file"] == str(case.script) and case["LINE"] in place["text"], first["where"]
    if case["RANK"]:
        assert re.match(rf"Rank {case['RANK']} ", first["title"]), first["title"]
    if case["WARMUP"]:
        assert warmup == pytest.approx(int(case["WARMUP"]), abs=WARMUP_WITHIN)
