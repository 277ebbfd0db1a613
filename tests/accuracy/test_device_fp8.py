"""FP8 on a simulated device: where it costs more than it saves, and where it pays."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from device.examine import explain
from device.models import Shape
from device.program import Program
from device.simulate import simulate
from device.trace import write_traces
from live.laboratory import FULLBORE
from simulated import program

NARROW = Shape("transformer", {"layers": 4, "width": 512, "seq": 512, "vocabulary": 8192})
WIDE = Shape("mlp", {"layers": 3, "width": 16384, "features": 16384})


def trained(shape: Shape, **more) -> Program:
    return program(device_key="h100", shape=shape, batch=16 if shape is NARROW else 32768, fp8=True, **more)


def finding_of(spoilt: Program, scratch: Path) -> dict | None:
    report = explain(FULLBORE, write_traces(simulate(spoilt, "recorded"), scratch), "")
    return next((each for each in report["findings"] if each.get("cause") == "fp8-overhead"), None)


def gain_without(spoilt: Program) -> float:
    return simulate(spoilt, "before").step_ns / simulate(replace(spoilt, fp8=False), "after").step_ns


@pytest.mark.long
def test_casts_that_cost_more_than_small_products_save_are_named_at_their_price(tmp_path):
    spoilt = trained(NARROW, host_scale=0.05)
    gain = gain_without(spoilt)
    assert gain > 1.08
    finding = finding_of(spoilt, tmp_path)
    assert finding is not None and "keep the layers" in finding["fix"][0]
    assert finding["share"] == pytest.approx(1 - 1 / gain, abs=0.03)
    assert finding["speedup"]["low"] <= gain <= finding["speedup"]["high"]


@pytest.mark.long
def test_fp8_that_pays_is_left_alone(tmp_path):
    spoilt = trained(WIDE)
    assert gain_without(spoilt) < 1
    assert finding_of(spoilt, tmp_path) is None


@pytest.mark.long
def test_a_program_in_16_bits_has_none(tmp_path):
    assert finding_of(replace(trained(NARROW), fp8=False), tmp_path) is None
