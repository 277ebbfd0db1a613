"""Recordings that are spoilt on purpose, and what counts as a refusal of them."""

from __future__ import annotations

import json
import random

import pytest
from device import refuse, unfit
from device.refuse import FIT, is_right, promises, refuses
from device.simulate import simulate
from device.trace import write_traces
from simulated import program


@pytest.fixture
def text(tmp_path) -> str:
    recorded = unfit.recorded_as(program(steps=4), FIT)
    return write_traces(simulate(recorded, "unfit"), tmp_path)[0].read_text()


def works(text: str) -> list[dict]:
    return [each for each in json.loads(text)["traceEvents"] if unfit.on_device(each)]


@pytest.mark.parametrize("kind", unfit.SPOILERS)
def test_each_kind_spoils_the_recording_and_leaves_json_unless_it_breaks_off(text, kind):
    spoilt = unfit.spoilt(text, kind, random.Random(1))
    if kind == "truncated":
        with pytest.raises(ValueError):
            json.loads(spoilt)
    elif kind != "one step":  # that is a matter of how it is recorded
        assert json.loads(spoilt)["traceEvents"] != sorted(
            json.loads(text)["traceEvents"], key=lambda each: each.get("ts", 0)
        )


def test_dropped_kernels_are_fewer_and_their_launches_stay(text):
    launches = sum(unfit.is_launch(each) for each in json.loads(text)["traceEvents"])
    for kind in ("kernels dropped at the start", "kernels dropped everywhere", "capture"):
        spoilt = unfit.spoilt(text, kind, random.Random(2))
        assert 0 < len(works(spoilt)) < len(works(text))
        assert sum(unfit.is_launch(each) for each in json.loads(spoilt)["traceEvents"]) == launches


def test_a_cold_start_delays_what_follows_and_changes_no_kernel(text):
    spoilt = works(unfit.spoilt(text, "cold start", random.Random(3)))
    assert sorted(each["dur"] for each in spoilt) == sorted(each["dur"] for each in works(text))
    assert spoilt[-1]["ts"] - spoilt[0]["ts"] > works(text)[-1]["ts"] - works(text)[0]["ts"] + 4000


def said(kind: str, **more) -> dict:
    return {"kind": kind, "judgeable": True, "conditions": {}, "promised": [], "ladder": 0, **more}


def test_what_forbids_gains_refuses():
    assert not refuses(said(FIT, conditions={"work-known": ["of-the-device"]}))
    assert refuses(said("one step", conditions={"single-step": ["gains", "healthy"]}))
    assert refuses(said("capture", judgeable=False))
    assert refuses({"kind": "truncated", "failed": "it is empty"})


def test_a_gain_of_an_unfit_recording_is_a_promise_too_many():
    assert promises(said("truncated", promised=["input-bound"]))
    assert promises(said("truncated", ladder=2))
    assert not promises(said(FIT, promised=["input-bound"], ladder=3))


def test_a_clock_that_was_corrected_is_as_good_as_one_that_was_right():
    corrected = said("clock ahead", corrected=True, promised=["input-bound"])
    assert is_right(corrected) and not promises(corrected)
    assert not is_right(said("clock ahead", promised=["input-bound"]))


def test_the_table_counts_refusals_and_promises():
    results = [
        {"seed": 1, "cause": "item", **said(FIT)},
        {"seed": 1, "cause": "item", **said("capture", judgeable=False)},
        {"seed": 3, "cause": "item", **said("truncated", promised=["input-bound"])},
    ]
    page = refuse.markdown(results)
    assert "| all unfit | 2 | 1 of 2" in page
    assert "| as it is | 1 | 0 of 1" in page
    assert "`3` (truncated, item)" in page
