"""Trackers as people run them, in an environment of their own (scripts/trackers.sh), and a training to send to them."""

from __future__ import annotations

import pathlib
import sys
from collections.abc import Iterator

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from tracker_servers import Collector, Mlflow  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "python"
PYTHON = ROOT / "build" / "trackers" / "bin" / "python"

TRAINING = """
import sys, time
import fullbore

class Rows:
    shape = (16, 4)

for _ in fullbore.watch(Rows() for _ in range(int(sys.argv[1]))):
    time.sleep(0.02)
    fullbore.step()
print("trained")
"""


@pytest.fixture(scope="session")
def tracker_python() -> pathlib.Path:
    if not PYTHON.exists():
        pytest.skip("no trackers are installed: scripts/trackers.sh")
    return PYTHON


@pytest.fixture
def training(fullbore) -> pathlib.Path:
    return fullbore.script("train.py", TRAINING)


@pytest.fixture
def searched() -> dict[str, str]:
    return {"PYTHONPATH": str(PACKAGE)}


@pytest.fixture
def mlflow(tracker_python, tmp_path) -> Mlflow:
    return Mlflow(tracker_python, tmp_path)


@pytest.fixture
def collector() -> Iterator[Collector]:
    made = Collector()
    yield made
    made.server.shutdown()
