"""`fullbore plan` as people use it: on a recorded run, on published traces, with prices, and with mistakes."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import sqlite3
import sys

import jsonschema
import pytest
import tomllib

ROOT = pathlib.Path(__file__).parents[2]
SCHEMA = json.loads((ROOT / "docs" / "plan.schema.json").read_text())
GOLDEN = ROOT / "tests" / "golden" / "resnet-no-workers.fbr"
TRACES = pathlib.Path(os.environ.get("FULLBORE_TRACES", ROOT.parent / "shared" / "traces"))
PRICES = ROOT / "examples" / "prices.toml"

sys.path.insert(0, str(ROOT / "tests" / "run"))
from terminal import Terminal  # noqa: E402

needs_traces = pytest.mark.skipif(not TRACES.exists(), reason="no traces in ../shared/traces or $FULLBORE_TRACES")


def plan(fullbore, *arguments) -> dict:
    said = fullbore.call("plan", *arguments, "--json", "-")
    assert said.code == 0, said.stderr
    found = json.loads(said.stdout)
    jsonschema.validate(found, SCHEMA)
    return found


def text(fullbore, *arguments) -> str:
    said = fullbore.call("plan", *arguments)
    assert said.code == 0, said.stderr
    return said.stdout.decode()


def test_a_run_on_a_cpu_tells_its_loader_and_names_the_recording_that_would_tell_more(fullbore):
    said = text(fullbore, GOLDEN)
    assert "whatever the device, its loader feeds at most" in said
    assert "record: fullbore run --windows 4@100 --" in said
    found = plan(fullbore, GOLDEN, "--devices", "t4,v100", "--prices", PRICES)
    assert all("samples_per_s" not in row and row["why_not"] for row in found["rows"])
    assert "choice" not in found


def as_if_on(device: str, run: pathlib.Path, copy: pathlib.Path, **more: object) -> pathlib.Path:
    """The recorded run, had its steps been those of a device: what a machine with one would have written down."""
    shutil.copy(run, copy)
    with sqlite3.connect(copy) as file:
        ((facts,),) = file.execute("SELECT facts FROM rank").fetchall()
        facts = {**json.loads(facts), "device": f"cuda:0 ({device})", **more}
        file.execute("UPDATE rank SET facts = ?, device = ?", [json.dumps(facts), "cuda:0"])
    return copy


def test_a_run_on_a_device_tells_more_of_them_with_its_loader_and_what_they_cost(fullbore):
    run = as_if_on("Tesla T4", GOLDEN.with_name("resnet-one-worker.fbr"), fullbore.directory / "t4.fbr")
    fullbore.script("prices.toml", T4 + 'up_to = 4\nper_hour = 0.35\nsource = "made"\ndate = 2026-11-29\n')
    found = plan(fullbore, run, "--devices", "t4,v100", "--prices", "prices.toml", "--gpus", "1,2")
    one, two = (row for row in found["rows"] if row["device"] == "T4")
    recorded = found["recordings"][0]
    rate = recorded["batch"] / recorded["step_ns"] * 1e9
    assert one["samples_per_s"]["low"] <= rate * 1.1 and rate * 0.9 <= one["samples_per_s"]["high"]
    assert one["samples_per_s"]["expected"] < two["samples_per_s"]["expected"] < 2.05 * one["samples_per_s"]["expected"]
    assert (one["cores"], two["cores"]) == (4, 8)
    cost = 0.35 * 1e6 / one["samples_per_s"]["expected"] / 3600
    assert one["per_million_samples"]["expected"] == pytest.approx(cost)
    other = next(row for row in found["rows"] if row["device"].startswith("V100"))
    assert "was not recorded" in other["why_not"]
    assert "x T4" in found["sentences"][0]
    said = text(fullbore, run, "--devices", "t4,v100", "--prices", "prices.toml", "--gpus", "1,2")
    assert "a million" in said
    assert "record: fullbore run --windows 4@100 --" in said


ONE_WORKER = GOLDEN.with_name("resnet-one-worker.fbr")


def test_recordings_of_different_programs_are_not_compared(fullbore):
    one = as_if_on("Tesla T4", ONE_WORKER, fullbore.directory / "one.fbr")
    other = as_if_on("Tesla T4", ONE_WORKER, fullbore.directory / "other.fbr", model="GPT2")
    refused = fullbore.call("plan", one, other)
    assert refused.code == 2
    assert "GPT2: plan compares recordings of one program" in refused.stderr
    assert fullbore.call("plan", one, one).code == 0


@needs_traces
def test_samples_and_steps_are_not_compared(fullbore):
    run = as_if_on("Tesla T4", ONE_WORKER, fullbore.directory / "one.fbr")
    trace = TRACES / "qwen-h100-eager.json.gz"
    refused = fullbore.call("plan", run, trace)
    assert refused.code == 2
    assert "--batch N says how many" in refused.stderr
    assert fullbore.call("plan", run, trace, "--batch", "8").code == 0


def test_of_a_part_of_a_job_nothing_is_told(fullbore):
    part = as_if_on("Tesla T4", ONE_WORKER, fullbore.directory / "part.fbr", world_size="4")
    assert "4 ranks trained, of which 1 is here" in text(fullbore, part)


def test_a_goal_is_met_by_a_machine_with_more_cores_that_costs_more(fullbore):
    run = as_if_on("Tesla T4", ONE_WORKER, fullbore.directory / "t4.fbr")
    made = 'gpus = 1\nsource = "made"\ndate = 2026-11-29\ndevice = "t4"\n'
    small = f'[[machine]]\nname = "small"\ncores = 1\nper_hour = 0.3\n{made}'
    fullbore.script("small.toml", small)
    large = f'[[machine]]\nname = "large"\ncores = 16\nper_hour = 0.4\n{made}'
    fullbore.script("both.toml", small + large)
    rates = [
        row["samples_per_s"]["expected"] for row in plan(fullbore, run, "--gpus", "1", "--prices", "both.toml")["rows"]
    ]
    assert len(rates) == 2 and rates[0] < 0.9 * rates[1], "else the goal below says nothing"
    need = ("--gpus", "1", "--need", f"{(rates[0] + rates[1]) / 2}/s", "--prices")
    assert "choice" not in plan(fullbore, run, *need, "small.toml")
    both = plan(fullbore, run, *need, "both.toml")
    assert both["rows"][both["choice"]["row"]]["cores"] == 16


@needs_traces
def test_a_trace_tells_other_devices(fullbore):
    found = plan(fullbore, TRACES / "qwen-h100-eager.json.gz", "--gpus", "1", "--batch", "16", "--prices", PRICES)
    assert {row["device"] for row in found["rows"]} >= {"H100 SXM", "MI300X"}
    for row in found["rows"]:
        if "why_not" in row:
            continue
        rate = row["samples_per_s"]
        assert rate["low"] <= rate["expected"] <= rate["high"]
        assert row["binds"]
    assert " less per million samples than " in found["sentences"][0] or "about as much" in found["sentences"][0]


@needs_traces
def test_a_trace_without_shapes_invents_nothing(fullbore):
    found = plan(fullbore, TRACES / "ddp-v100-rank1of2.json.gz", "--devices", "h100,mi300x")
    assert all("no shapes" in row["why_not"] for row in found["rows"])
    (missing,) = [one for one in found["not_told"] if one["what"] == "other devices"]
    assert "record_shapes=True" in missing["command"]
    assert "range" not in text(fullbore, TRACES / "ddp-v100-rank1of2.json.gz", "--devices", "h100")


@needs_traces
@pytest.mark.parametrize("trace", ["vit-h100-eager.json.gz", "resnet50-v100-workers0.pt.trace.json.gz"])
def test_no_line_is_wider_than_the_terminal(fullbore, trace):
    command = [str(fullbore.binary), "plan", str(TRACES / trace), "--batch", "64", "--prices", str(PRICES)]
    environment = {**os.environ, "TERM": "xterm-256color", "LC_ALL": "C.UTF-8"}
    terminal = Terminal(command, environment, fullbore.directory, rows=90, columns=80)
    while terminal.read(5):
        pass
    lines = terminal.screen.display
    table = [line for line in lines if "x V100" in line or "x T4" in line or "x MI300X" in line]
    assert table
    assert not [line for line in lines if line.startswith("MB/s")]
    # A line that wrapped would leave its end at the left edge, where nothing of ours begins.
    assert [line for line in lines if line[:1].strip()] == []


def test_the_example_of_prices_is_a_file_of_prices(fullbore):
    example = text(fullbore, "--prices-example")
    assert example == PRICES.read_text()
    machines = tomllib.loads(example)["machine"]
    assert all(machine["source"] and machine["date"] for machine in machines if "per_hour" in machine)


T4 = '[[machine]]\nname = "a"\ndevice = "T4"\ncores = 4\n'


@pytest.mark.parametrize(
    ("prices", "wrong", "right"),
    [
        ("[[machine", "prices.toml:1: ", "--prices-example"),
        (T4 + "per_hour = -2\n", "prices.toml:5: machine 'a': per_hour = -2 is not a price", ""),
        (T4.replace("T4", "T5"), "prices.toml:3: machine 'a': no device is called", "did you mean 'T4'?"),
        (T4.replace('device = "T4"\n', ""), "device is missing", 'device = "..."'),
        (T4 + "per_hour = 2\n", "a price needs its source and its date", "date = 2026-11-29"),
        ("", "no machine is in it", "docs/plan.md"),
    ],
)
def test_what_is_wrong_with_prices_is_said_with_its_line(fullbore, prices, wrong, right):
    fullbore.script("prices.toml", prices)
    said = fullbore.call("plan", GOLDEN, "--prices", "prices.toml")
    assert said.code == 2
    assert wrong in said.stderr
    assert right in said.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--devices", "t5"], "did you mean 'T4'?"),
        (["--devices", "t4,abacus"], "the devices are"),
        (["--gpus", "0"], "'0' is no number of devices"),
        (["--gpus", "two"], "--gpus"),
        (["--need", "fast"], "--need 2000/s"),
        (["--need", "-1/s"], "is no rate"),
        (["--by", "tomorrow"], "--by"),
        (["--budget", "500"], "--prices-example"),
        (["--budget", "-5", "--prices", str(PRICES)], "--budget"),
        (["--need", "5/s", "--by", "2h"], "one of them"),
        (["--samples", "0"], "'0' is no number of samples"),
        (["--batch", "0"], "--batch"),
        (["--prices", "nowhere.toml"], "nowhere.toml"),
    ],
)
def test_wrong_values_are_refused_with_what_would_be_right(fullbore, words, said):
    done = fullbore.call("plan", GOLDEN, *words)
    assert done.code == 2, done.stdout
    assert said in done.stderr


def test_what_was_not_recorded_is_said(fullbore):
    fullbore.call("run", "-q", "--", "true")
    assert "no steps were seen in it" in text(fullbore)
    assert fullbore.call("plan", "nowhere").code == 2
    assert fullbore.call("plan", "nowhere.json.gz").code == 2
    assert fullbore.call("plan", "--json", GOLDEN).code == 2  # no file of ours to replace
