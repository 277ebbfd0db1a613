"""Device windows of a run: what its report gains by them. What they must not disturb: tests/hook/test_windows.py."""

from __future__ import annotations

import collections
import json
import pathlib
import subprocess
import sys
from typing import Any

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
FIRST, STEPS = 20, 4
FLAGS = ["--windows", f"{STEPS}@{FIRST}"]

# Keeps a copy of the trace that the recorder takes away.
TRAINING = """
import shutil, sys
import torch
from torch import nn
export = torch.profiler.profile.export_chrome_trace
def keep(self, path):
    export(self, path)
    shutil.copy(path, "kept.json")
torch.profiler.profile.export_chrome_trace = keep
torch.set_num_threads(1)
model = nn.Sequential(nn.Conv2d(3, 16, 3), nn.ReLU(), nn.Flatten(), nn.Linear(16 * 30 * 30, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(60):
    optimizer.zero_grad()
    model(torch.ones(8, 3, 32, 32)).sum().backward()
    optimizer.step()
"""


def outermost(trace: pathlib.Path, steps: list[int]) -> dict[str, float]:
    """Seconds of the outermost operators, by name, in these steps: counted from the trace itself."""
    events = [e for e in json.loads(trace.read_text())["traceEvents"] if e.get("ph") == "X"]
    marks = {int(e["name"].partition("#")[2]): e for e in events if e["name"].startswith("ProfilerStep#")}
    begin, end = marks[steps[0]]["ts"], marks[steps[-1]]["ts"] + marks[steps[-1]]["dur"]
    operators = sorted((e for e in events if e.get("cat") == "cpu_op"), key=lambda e: (e["ts"], -e["dur"]))
    covered: dict[int, float] = collections.defaultdict(float)  # by thread: until when
    seconds: dict[str, float] = collections.defaultdict(float)
    for event in operators:
        if event["ts"] < covered[event["tid"]]:
            continue
        covered[event["tid"]] = event["ts"] + event["dur"]
        if begin <= event["ts"] < end:
            seconds[event["name"].rpartition(": ")[2]] += event["dur"] / 1e6
    return seconds


@pytest.mark.long
def test_on_a_cpu_the_operators_of_a_step_are_in_the_report(fullbore, torch_python):
    done = fullbore.run(torch_python, fullbore.script("train.py", TRAINING), flags=FLAGS)

    assert done.code == 0, done.stderr
    window = done.report["device_window"]
    assert window["of"] == "cpu" and window["first_step"] + window["steps"] == FIRST + STEPS
    first = window["first_step"] - FIRST
    measured = outermost(fullbore.directory / "kept.json", list(range(first, STEPS)))
    for operator in window["operators"][:5]:
        assert operator["ns"] * window["steps"] / 1e9 == pytest.approx(measured[operator["name"]], rel=0.02)
    by_name = {operator["name"]: operator for operator in window["operators"]}
    assert by_name["aten::conv2d"]["flops_per_s"] > 0 and by_name["aten::conv2d"]["count"] == 1
    assert "under its profiler" in done.stderr


@pytest.mark.long
def test_steps_of_a_window_are_counted_and_say_nothing_of_the_speed(fullbore, torch_python):
    done = fullbore.run(torch_python, fullbore.script("train.py", TRAINING), flags=FLAGS)

    steady = done.report["window"]
    assert steady["steps"] + steady["warmup_steps"] == 60 - (STEPS + 1)


@pytest.mark.long
def test_the_traces_stay_for_perfetto_if_they_are_asked_for(fullbore, torch_python):
    done = fullbore.run(torch_python, fullbore.script("train.py", TRAINING), flags=[*FLAGS, "--keep-windows"])

    (trace,) = done.runs.glob("*.json.zst")
    assert trace.name == f"{done.run_file.stem}.rank0-step{FIRST}.json.zst"
    explained = fullbore.explain(trace)
    assert explained["facts"]["steps_marked"] is True


SIMULATED = 61  # seed of bench/accuracy/device

PLAYED = """
import shutil, sys
import torch
from torch import nn
torch.profiler.profile.export_chrome_trace = lambda self, path: shutil.copy(sys.argv[1], path)
model = nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(60):
    optimizer.zero_grad()
    model(torch.ones(8, 4)).sum().backward()
    optimizer.step()
"""


@pytest.fixture(scope="module")
def device_trace(tmp_path_factory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("device")
    exam = [sys.executable, ROOT / "bench/accuracy/exam.py", "device", "--only", str(SIMULATED)]
    keep = ["--keep", folder, "--results", folder / "results.jsonl"]
    subprocess.run([*exam, *keep], check=True, capture_output=True)
    return folder / str(SIMULATED) / "rank0.pt.trace.json"


def to_nine_digits(said: Any) -> Any:
    """A step time that was written down as text and read again differs in the last bit."""
    if isinstance(said, dict):
        return {key: to_nine_digits(value) for key, value in said.items()}
    if isinstance(said, list):
        return [to_nine_digits(each) for each in said]
    return float(f"{said:.9g}") if isinstance(said, float) else said


def test_what_a_device_did_ends_in_the_same_words_as_its_trace(fullbore, torch_python, device_trace):
    """No device is here: a recorded trace takes the place of what the profiler would have written."""
    done = fullbore.run(torch_python, fullbore.script("train.py", PLAYED), device_trace, flags=FLAGS)
    step_ms = done.report["step_time"]["median_ns"] / 1e6
    alone = fullbore.explain(device_trace, "--step-time", f"{step_ms:.9f}ms")

    assert done.report["device_window"]["of"] == "device"
    assert done.report["device_window"]["shares"] == alone["step_time"]["shares"]
    assert to_nine_digits(done.report["replay"]) == to_nine_digits(alone["replay"])
    of_device = {"comm-bound", "launch-bound", "sync-bound", "copy-bound", "no-tensor-cores", "inefficient-kernels"}
    expected = [finding for finding in alone["findings"] if finding["id"] in of_device]
    found = [finding for finding in done.report["findings"] if finding["id"] in of_device]
    assert expected and to_nine_digits(found) == to_nine_digits(expected)
    assert not [left for left in done.report["not_judged"] if "on the device" in left["id"]]


@pytest.mark.parametrize("wrong", ["often", "4@", "0@10", "51@10", "every now and then", "every 0s", "-1@5"])
def test_a_wrong_time_for_windows_is_refused_with_an_example(fullbore, wrong):
    done = fullbore.run("true", flags=[f"--windows={wrong}"])
    assert done.code == 2
    assert f"'{wrong}'" in done.stderr and "--windows 4@100" in done.stderr
