"""Scores and tables of simulated pairs."""

from __future__ import annotations

import pytest
from device.score import score
from device.summary import as_json, markdown
from finished_pair import pair, said


def test_a_verdict_that_names_what_was_planted_and_predicts_its_cure_is_right_in_every_respect():
    scored = score(pair())
    assert scored.right and scored.listed and scored.in_range and not scored.misadvised
    assert scored.error == pytest.approx(0.0)
    assert scored.width == pytest.approx(11 / 9)
    assert scored.share_error == pytest.approx(0.0)
    assert scored.step_error == pytest.approx(0.0)


def test_another_first_finding_is_wrong_though_the_planted_one_is_listed():
    scored = score(pair(said("sync-bound"), said()))
    assert not scored.right and scored.listed


def test_another_finding_is_right_if_its_advice_brings_as_much_as_the_planted_cure():
    def with_advice(ns: float) -> bool:
        true = {**pair()["true"], "advised_ns": ns}
        return score(pair(said("sync-bound"), true=true)).right

    assert with_advice(9.9e6) and with_advice(10.2e6)
    assert not with_advice(11e6) and not with_advice(20e6)


def test_the_error_is_that_of_the_predicted_step_time_and_negative_if_it_promises_too_much():
    scored = score(pair(prediction={"by": "what-if", "expected": 8e6, "low": 7e6, "high": 9e6}))
    assert scored.error == pytest.approx(-0.2)
    assert not scored.in_range


def test_without_a_cure_or_a_prediction_nothing_is_measured():
    assert score(pair(prediction=None)).error is None
    uncured = pair()
    del uncured["true"]["after_ns"]
    assert score(uncured).error is None


def test_the_share_is_that_of_the_finding_that_names_the_cause_in_points():
    listed = score(pair(said("sync-bound", share=0.9), said(share=0.56)))
    assert listed.share_error == pytest.approx(0.06)


def test_the_step_time_is_compared_over_the_steps_that_the_report_is_of():
    assert score(pair(warmup_steps=0, steps=3)).step_error == pytest.approx(20 / (61 / 3) - 1)
    assert score(pair(steps=7)).step_error is None


def test_advice_that_must_not_be_given_is_found_wherever_it_stands_if_it_promises_something():
    forbidden = {"forbids": [r"pin_memory"]}
    assert score(pair(**forbidden)).misadvised.startswith("copy-bound")
    assert score(pair(said("sync-bound", fix=["no .item()"]), said(), **forbidden)).misadvised
    assert not score(pair(said(gain=None), **forbidden)).misadvised
    assert not score(pair(said(gain=1.02), **forbidden)).misadvised
    assert not score(pair(said(fix=["send uint8"]), **forbidden)).misadvised


def test_where_nothing_helps_any_promise_is_wrong():
    healthy = {"forbids": [""], "expects": ["healthy"], "cause": "healthy"}
    assert score(pair(said("healthy", None), said("comm-bound", 1.3), **healthy)).misadvised
    assert not score(pair(said("healthy", None), **healthy)).misadvised


def test_one_step_is_no_reason_to_call_a_program_healthy_or_critically_ill():
    single = {"cause": "single-step", "expects": ["*"], "never": ["healthy"]}
    assert not score(pair(said("healthy", None), **single)).right
    assert not score(pair(said("launch-bound", severity="critical"), **single)).right
    assert score(pair(said("launch-bound"), **single)).right


def test_the_tables_count_every_pair_once_and_show_the_worst():
    wrong = pair(said("sync-bound", title="The host waits."), case="9", device="h100", prediction=None)
    text = markdown([pair(), wrong, pair(case="8")], "odd")
    assert "| all | 2 | 1 of 2 (9 to 91 %) | 0.0 / 0.0 points | 0.0 / 0.0 % | 1 of 1 (21 to 100 %) | 1.22 | 0 |" in text
    assert "| h100 | 1 | 0 of 1" in text
    assert '- `9` (pageable): copies from pageable memory.\n  Said: "The host waits."\n  20.00 ms a step' in text
    assert "- `7`" not in text
    assert "off by 0.00 % at most" in text


def test_pairs_that_could_not_be_explained_are_listed():
    failed = {**pair(case="11"), "failed": "ended with 1: cannot read"}
    del failed["findings"]
    assert "- `11`: ended with 1: cannot read" in markdown([pair(), failed], "odd")


def test_figures_for_programs_are_those_of_the_tables():
    groups = as_json([pair(), pair(case="9", device="h100"), pair(case="8")], "odd")["groups"]
    assert groups["all"]["pairs"] == 2 and groups["pageable"]["right"] == 2
    assert groups["all"]["error_p95"] == pytest.approx(0.0) and groups["all"]["range_holds"] == 2


def test_no_results_are_no_table():
    assert markdown([], "odd") == "No simulated pairs yet."
