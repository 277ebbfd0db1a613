"""The loader's pixels against torchvision's, with the parameters that the loader drew: `pytest -s` shows the table."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parents[1]
APPLY_PLAN = ROOT / "build/release/src/loader/core/options/loader_apply_plan"
TIMEOUT_S = 180  # a hang, on any machine

PROMISED = 1.0  # steps of 1/255 on average: what docs/loader.md promises of every transform
# Except for decoding at a smaller scale and gray from the JPEG's own luma, everything matches Pillow up to the rounding
# of 16-bit weights; measured below 0.004 on average.
FAITHFUL = 0.02


def python_with_torchvision() -> str:
    for python in (sys.executable, "/usr/bin/python3"):
        if subprocess.run([python, "-c", "import torchvision, PIL"], capture_output=True).returncode == 0:
            return python
    pytest.skip("no Python with torchvision and Pillow here")


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> list[dict]:
    if not APPLY_PLAN.exists():
        pytest.skip("loader_apply_plan is not built: make build")
    directory = tmp_path_factory.mktemp("pixels")
    command = [python_with_torchvision(), HERE / "compare_pixels.py", APPLY_PLAN, directory]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.long
def test_every_transform_is_within_one_step_of_torchvision_on_average(compared: list[dict]) -> None:
    print(f"\n{'transforms':46} {'samples':>7} {'mean':>8} {'worst':>8} {'largest':>8}   in steps of 1/255")
    for row in compared:
        print(f"{row['case']:46} {row['samples']:7} {row['mean']:8.4f} {row['worst_mean']:8.4f} {row['largest']:8.1f}")
    assert len(compared) > 30
    assert {row["case"]: row["mean"] for row in compared if row["mean"] > PROMISED} == {}


@pytest.mark.long
def test_only_scaled_decoding_and_gray_differ_by_more_than_rounding(compared: list[dict]) -> None:
    exact = [row for row in compared if "scaled" not in row["case"] and "gray" not in row["case"]]
    assert {row["case"]: row["mean"] for row in exact if row["mean"] > FAITHFUL} == {}
    # Geometry that is off by one pixel would show in a single sample.
    assert {row["case"]: row["worst_mean"] for row in exact if row["worst_mean"] > 3 * FAITHFUL} == {}
