"""What is true of a run: steps, shares and intervals."""

from __future__ import annotations

from dataclasses import replace

import pytest
from device.simulate import simulate
from device.truth import RankTruth, lateness, length, shares, union, without, without_matrix_units
from simulated import program


def test_a_union_counts_what_is_covered_twice_once():
    assert union([(5, 9), (0, 3), (2, 4), (9, 10)]) == [(0, 4), (5, 10)]


def test_empty_intervals_vanish_from_a_union():
    assert union([(3, 3), (1, 2)]) == [(1, 2)]


def test_what_is_left_of_intervals_without_others():
    assert without([(0, 10), (20, 30)], [(2, 4), (8, 22)]) == [(0, 2), (4, 8), (22, 30)]
    assert without([(0, 10)], [(0, 10)]) == []
    assert without([(0, 10)], []) == [(0, 10)]


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"ranks": 2, "overlap": False},
        {"workers": 0, "fetch_ms": 10.0},
        {"pinned": False, "input_scale": 1000.0},
        {"checkpoint_every": 2, "checkpoint_ms": 5.0, "item_of_loss": 1},
    ],
)
def test_shares_add_up_to_the_step(settings):
    for host in (run := simulate(program(**settings), "truth")).hosts:
        assert sum(RankTruth(run, host).shares().values()) == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize("cold", [True, False])
def test_steps_tile_the_recording(cold):
    run = simulate(program(cold=cold), "truth")
    assert len(run.step_times) == 4
    assert sum(run.step_times) == run.completions[-1] - run.completions[0]
    assert all(step > 0 for step in run.step_times)


def test_a_step_ends_on_the_device_where_that_is_behind_the_host():
    run = simulate(program(batch=256), "truth", noise=False)
    host = run.hosts[0]
    assert host.step_ends[-1] < run.completions[-1]
    assert run.completions[-1] == max(work.end for work in host.gpu.history)


def share_of(name: str, **settings) -> float:
    return shares(simulate(program(cold=False, **settings), "truth", 8, noise=False))[name]


def test_what_is_planted_shows_in_its_share():
    usual = {"batch": 128}
    assert share_of("data", **usual) < 0.01 < 0.4 < share_of("data", **usual, workers=0, fetch_ms=30.0)
    assert share_of("copy", **usual) < 0.01 < 0.3 < share_of("copy", **usual, pinned=False, input_scale=300.0)
    assert share_of("sync", **usual) < 0.01 < 0.03 < share_of("sync", **usual, items_per_step=12)
    assert share_of("silent", **usual) == 0 < 0.4 < share_of("silent", **usual, silent_ms=20.0)
    assert share_of("launch", **usual) < 0.05 < 0.4 < share_of("launch", batch=1)
    assert share_of("comm", **usual, ranks=2) < 0.1 < 0.3 < share_of("comm", **usual, ranks=2, fabric_scale=0.01)


def test_a_wait_that_the_device_does_not_notice_has_no_share():
    """Fetching takes a third of the step, beside a device that has enough to do."""
    assert share_of("data", batch=512, workers=0, fetch_ms=4.0) < 0.01


def test_a_pause_belongs_to_its_cause_only_as_long_as_the_device_is_idle():
    settings = {"batch": 128, "gc_every": 1, "gc_ms": 20.0}
    collected = share_of("garbage-collection", **settings)
    run = simulate(program(**settings), "truth", 8, noise=False)
    assert 0.2 < collected < 20e6 / run.step_ns


def test_others_wait_for_a_slow_rank_and_it_waits_for_nobody():
    slow = program(batch=128, ranks=2, slow_rank=1, slow_device=1.5)
    run = simulate(slow, "truth", noise=False)
    waits = [length(RankTruth(run, host).waiting()) for host in run.hosts]
    assert waits[0] > 10 * waits[1]
    assert lateness(run) > 0.15
    even = simulate(replace(slow, slow_rank=-1, slow_device=1.0), "truth", noise=False)
    assert abs(lateness(even)) < 0.01


def test_matrix_work_without_matrix_units_is_that_in_float32():
    of = {p: without_matrix_units(simulate(program(batch=64, precision=p), "truth")) for p in ("fp32", "bf16")}
    assert of["fp32"] > 0.5 and of["bf16"] == 0
