"""A training that uses no PyTorch at all, and marks its loop, is explained."""

import os
import pathlib
import sys

import pytest

PACKAGE = pathlib.Path(__file__).resolve().parents[2] / "python"

PROGRAM = """
import sys, time
import fullbore

def batches():
    for number in range(300):
        time.sleep(0.006)
        yield [[float(number)] * 4] * 32

weights, waited = [0.0] * 4, 0.0
begun = before = time.perf_counter()
for batch in fullbore.watch(batches()):
    came = time.perf_counter()
    waited, end = waited + came - before, came + 0.004
    while time.perf_counter() < end:
        weights = [w + sum(row) * 1e-9 for w, row in zip(weights, batch)]
    fullbore.step()
    before = time.perf_counter()
print(waited / (before - begun))
"""


@pytest.mark.long
def test_what_a_marked_loop_waits_for_is_found(fullbore):
    search = os.pathsep.join(filter(None, [str(PACKAGE), os.environ.get("PYTHONPATH", "")]))
    done = fullbore.run(sys.executable, fullbore.script("train.py", PROGRAM), env={"PYTHONPATH": search})
    assert done.code == 0, done.stderr
    window = done.report["window"]
    assert window["steps"] + window["warmup_steps"] == 300
    first = done.report["findings"][0]
    assert (first["id"], first["cause"]) == ("input-bound", "own-iterator")
    assert first["share"] == pytest.approx(float(done.stdout), abs=0.05) and "generator" in first["title"]
    assert "num_workers" not in first["title"] and "ahead of the training" in first["fix"][0]
    assert done.report["throughput"]["steps_per_s"] > 0


def test_a_loop_that_nobody_saw_is_told_how_to_be_seen(fullbore):
    done = fullbore.run(sys.executable, "-c", "import time; time.sleep(1)")
    (training,) = [left for left in done.report["not_judged"] if left["id"] == "training"]
    assert "fullbore.step()" in training["needs"]
