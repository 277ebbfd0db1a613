"""Scores of finished cases: what counts as right, as a loss, as kept promises and as missed gains."""

from __future__ import annotations

import pytest
from finished_case import finding, proof, result
from live.score import score


def test_advice_that_brings_what_was_predicted_is_right_in_every_respect():
    scored = score(result())
    assert scored.right and not scored.slower and scored.in_range
    assert scored.gain == pytest.approx(1.5)
    assert scored.error == pytest.approx(0.0)
    assert scored.width == pytest.approx(1.7 / 1.3)


def test_the_error_is_that_of_the_predicted_step_time():
    scored = score(result(proofs={"advised": proof(1.2)}))
    assert scored.error == pytest.approx(0.020 / 0.025 - 1)  # 20 ms were predicted, 25 ms measured
    assert not scored.in_range


def test_advice_that_is_proven_to_lose_is_slower():
    assert score(result(proofs={"advised": proof(0.75)})).slower


def test_a_loss_that_is_not_proven_is_none():
    scored = score(result(proofs={"advised": proof(0.94, 0.85, 1.04)}))
    assert scored.slower is False
    assert scored.apart == pytest.approx(1.04 / 0.85)


def test_what_could_not_be_measured_says_nothing_of_the_advice():
    scored = score(result(proofs={"advised": {"verdict": "not-proven", "gain": None}}))
    assert scored.right
    assert scored.gain is None and scored.slower is None and scored.error is None and scored.in_range is None


def test_another_cause_than_the_planted_one_is_wrong():
    first = finding("host-other checkpoint")
    assert not score(result(first, proofs={"cure": proof(2), "advised": proof(1)})).right


def test_advice_that_brings_as_much_as_the_planted_cure_is_right_whatever_its_name():
    first = finding("input-bound fast-decoder")
    assert score(result(first, proofs={"cure": proof(1.5), "advised": proof(1.49)})).right


def test_advice_that_brings_less_than_the_planted_cure_under_another_name_is_wrong():
    first = finding("input-bound fast-decoder")
    assert not score(result(first, proofs={"cure": proof(3), "advised": proof(1.5)})).right


def silent(said: str, **changes: dict) -> dict:
    return result(finding(said, None), state="none", proofs=changes)


def test_healthy_is_right_where_no_change_gains_anything():
    scored = score(silent("healthy", cure=proof(1.003)))
    assert scored.right and scored.missed is False


def test_healthy_is_wrong_and_a_miss_where_a_change_gains_a_tenth():
    scored = score(silent("healthy", cure=proof(1.003), **{"one-thread": proof(15)}))
    assert not scored.right and scored.missed
    assert scored.best == pytest.approx(15)


def test_a_gain_that_is_not_proven_is_not_missed():
    assert score(silent("healthy", cure=proof(1.2, 0.9, 1.6))).missed is False


def test_of_several_gains_one_that_is_proven_is_missed():
    assert score(silent("healthy", cure=proof(1.5, 0.8, 2.8), other=proof(1.3, 1.25, 1.35))).missed


def test_where_nothing_could_be_measured_it_is_not_known_whether_something_is_missed():
    assert score(silent("healthy", cure={"verdict": "not-proven", "gain": None})).missed is None


def test_waiting_without_a_promise_is_right_where_the_planted_cure_gains_nothing():
    said = "input-bound decode"
    assert score(silent(said, cure=proof(0.97))).right
    assert not score(silent(said, cure=proof(1.5))).right


def test_advice_without_a_promise_may_lose_but_promises_nothing():
    lost = result(
        finding("thread-oversubscription", None),
        state="unpromised",
        proofs={"advised": proof(0.75)},
    )
    assert score(lost).slower and score(lost).error is None and score(lost).missed is None


def test_healthy_without_any_other_measurement_is_not_called_right():
    assert not score(silent("healthy")).right


def test_contention_is_wrong_where_no_other_program_runs():
    assert not score(silent("cpu-contention", cure=proof(1))).right


def test_contention_is_right_beside_other_programs():
    assert score({**silent("cpu-contention"), "foreign": 2}).right


def test_a_promise_about_something_that_the_program_does_not_do_is_a_misfit():
    scored = score(result(state="misfit", proofs={}))
    assert scored.misfit and scored.gain is None and scored.slower is None


def test_growing_memory_may_stand_behind_another_finding():
    leak = {"expects": ["*memory*"], "cause": "memory-growth", "advice": "none"}
    beside = [finding("healthy", None), finding("memory-growth", None)]
    assert score(result(**leak, findings=beside)).right
    assert not score(result(**leak, findings=beside[:1])).right


def test_the_report_is_held_against_the_clock_of_the_same_run():
    assert score(result()).clock_error == pytest.approx(0.031 / 0.030 - 1)
    assert score(result(step_s=None)).clock_error is None


def test_advice_beside_others_that_loses_alone_is_slower_unless_it_says_that_it_is_for_now():
    lost = {"alone": True, "proofs": {"advised": proof(0.75)}}
    assert score(result(finding(change="OMP_NUM_THREADS=1"), **lost)).slower
    for_now = finding(change="OMP_NUM_THREADS=1", fix=["while other programs use 2 of 2 cores: OMP_NUM_THREADS=1"])
    assert not score(result(for_now, **lost)).slower
    assert score(result(for_now, **{**lost, "alone": False})).slower


def test_what_was_predicted_beside_others_is_not_held_against_what_was_measured_alone():
    scored = score(result(alone=True))
    assert scored.gain and scored.error is None and scored.in_range is None
