"""Training with fullbore.data under `fullbore run`: its steps are recorded, and the stage that binds is named."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "build" / "release" / "python"

TRAIN = """
    import sys, time
    import torch
    from torch import nn
    from fullbore.data import ImageFolder, transforms

    def python_loop(sample):
        total = 0
        for i in range(100_000):
            total += i * i

    pause = float(sys.argv[2])
    chosen = {"map": python_loop} if "map" in sys.argv else {}
    crop = [transforms.RandomResizedCrop(48), transforms.Normalize()]
    loader = ImageFolder(sys.argv[1], transforms=crop, batch_size=8, seed=0, **chosen)  # made here
    model = nn.Sequential(nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(48, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    end = time.monotonic() + 4.5
    while time.monotonic() < end:
        for images, labels in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(images), labels).backward()
            time.sleep(pause)
            optimizer.step()
"""


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    folder = tmp_path_factory.mktemp("photos")
    maker = ROOT / "examples" / "make_photos.py"
    subprocess.run([sys.executable, maker, folder, "--count", "48"], check=True, capture_output=True)
    return folder


@pytest.fixture
def train(fullbore, torch_python, photos):
    """Runs the training and returns its report."""
    if not list(PACKAGE.glob("fullbore/data/_core*")):
        pytest.skip("fullbore.data is not built here")
    lines = TRAIN.replace("\n    ", "\n")

    def run(pause: float, *arguments: str) -> dict:
        script = fullbore.script("train.py", lines)
        search = os.pathsep.join(filter(None, [str(PACKAGE), os.environ.get("PYTHONPATH", "")]))
        done = fullbore.run(torch_python, script, photos, str(pause), *arguments, env={"PYTHONPATH": search})
        assert done.code == 0, done.stderr
        assert not [m for m in done.report["messages"] if m.startswith("hook")], done.report["messages"]
        return done.report

    return run


def value(finding: dict, what: str) -> float:
    (found,) = (e["value"] for e in finding["evidence"] if e["what"] == what)
    return found


def threads_in(report: dict, stage: str) -> float:
    return report["resources"][f"loader_busy{{loader=1,rank=0,stage={stage}}}"]["mean"]


@pytest.mark.long
def test_decoding_that_cannot_keep_up_is_named(train):
    report = train(0)
    first = next(f for f in report["findings"] if f["id"] == "input-bound")
    assert first["cause"] == "decode"
    assert first["where"][0]["file"].endswith("train.py")
    assert threads_in(report, "decode") > threads_in(report, "read")
    assert value(first, "threads in decode") == pytest.approx(threads_in(report, "decode"), rel=0.5)
    assert report["step_time"]["shares"]["data_wait"] > 0.3
    assert report["throughput"]["samples_per_s"] > 0
    assert first["speedup"]["expected"] > 1


@pytest.mark.long
def test_a_user_function_that_holds_the_gil_is_advised_to_run_in_processes(train):
    report = train(0, "map")
    first = next(f for f in report["findings"] if f["id"] == "input-bound")
    assert first["cause"] == "user-stage"
    assert "ImageFolder(map_processes=" in " ".join(first["fix"])  # not necessarily the first on a busy machine
    on_a_core = value(first, "threads on a core in your own stage")
    assert on_a_core + value(first, "threads waiting in your own stage") > value(first, "threads in decode")
    assert on_a_core < 1.3, "more than one thread held the GIL at a time"


@pytest.mark.long
def test_a_training_that_does_not_wait_is_told_that_more_threads_would_not_help(train):
    report = train(0.2)
    assert not [f for f in report["findings"] if f["id"] == "input-bound"]
    assert "more threads in the loader" in [w["what"] for w in report["would_not_help"]]
    assert report["resources"]["loader_ready_batches{loader=1,rank=0}"]["mean"] > 0
