"""A device's memory in the report of a run, what another batch would take of it, and what would have fitted: real runs
on the CPU, where tests/fakes/torch_device.py stands in for the device. 1,000 bytes a token there, beside 2 MB."""

from __future__ import annotations

import json
import pathlib

import jsonschema
import pytest

ROOT = pathlib.Path(__file__).parents[2]
SCHEMA = ROOT / "docs" / "report.schema.json"
WEIGHTS, STAYS = 512_000, 4 * 512_000


def recorded(fullbore, torch_python, batches):
    path = [f"import sys; sys.path.insert(0, {str(ROOT / 'tests' / 'fakes')!r})", "import torch_device"]
    script = fullbore.script("train.py", "\n".join([*path, f"torch_device.train({batches!r})"]))
    done = fullbore.run(torch_python, script)
    (run,) = done.runs.glob("*.fbr")
    return done, run


def asked(fullbore, run, what_if):
    report = fullbore.explain(run, "--what-if", what_if)
    jsonschema.validate(report, json.loads(SCHEMA.read_text()))
    return report["memory_what_if"]


@pytest.mark.long
def test_a_report_shows_what_fills_the_device_and_says_what_another_batch_takes(fullbore, torch_python):
    batches = [(4, width) for width in (50, 100, 300, 200, 500, 400)] * 4
    done, run = recorded(fullbore, torch_python, batches)
    assert done.code == 0, done.stderr
    parts = {part["name"]: part["bytes"] for part in done.report["memory"]["parts"]}
    assert parts == {
        "weights": WEIGHTS,
        "gradients": WEIGHTS,
        "states": 2 * WEIGHTS,
        "activations": 4 * 500 * 1000,
        "fragments": 100_000,
        "outside": 1_000_000,
        "free": 12_000_000 - STAYS - 2_000_000 - 1_100_000,
    }
    said = done.stderr
    assert (
        "device memory 5.1 MB of 12 MB" in said
        and "optimizer states 1.0 MB (exp_avg 512 kB, exp_avg_sq 512 kB)" in said
    )

    fits = asked(fullbore, run, "batch=8")
    assert fits["verdict"] == "fits" and fits["batch"] == "8 rows of 500 tokens" and fits["sizes"] == 3
    assert fits["expected"] == pytest.approx(STAYS + 4_000_000 + 1_100_000, rel=0.01)
    assert asked(fullbore, run, "batch=8,seq=2000")["verdict"] == "does not fit"
    assert asked(fullbore, run, "seq=250")["expected"] < asked(fullbore, run, "seq=500")["expected"]

    page = fullbore.directory / "page.html"
    shown = fullbore.call("explain", run, "--what-if", "seq=1000", "--html", page)
    assert "what if seq=1000: 4 rows of 1,000 tokens take 7.1 MB" in shown.stdout.decode().replace("\n    ", " ")
    assert "what if seq=1000" in page.read_text()


@pytest.mark.long
def test_of_one_size_it_is_a_guess_and_without_a_device_not_known(fullbore, torch_python):
    _, run = recorded(fullbore, torch_python, [(4, 100)] * 10)
    answer = asked(fullbore, run, "batch=8")
    assert answer["sizes"] == 1 and "one size" in answer["assumes"] and answer["low"] < answer["high"]
    train = "import torch\nw = torch.ones(2, requires_grad=True)\no = torch.optim.SGD([w])\n"
    train += "for _ in range(9): w.sum().backward(); o.step()"
    done = fullbore.run(torch_python, fullbore.script("cpu.py", train))
    (run,) = done.runs.glob("*.fbr")
    assert "trained on the CPU" in asked(fullbore, run, "batch=8")["missing"] and "memory" not in done.report


@pytest.mark.long
@pytest.mark.parametrize(("before", "is_said"), [((100, 200, 300, 400), True), ((100, 200), False)])
def test_the_end_by_memory_says_which_batch_would_have_fitted(fullbore, torch_python, before, is_said):
    done, _ = recorded(fullbore, torch_python, [(4, width) for width in (50, *before)] + [(4, 5000)])
    assert done.code == 1
    first = done.report["findings"][0]
    assert (first["id"], first["cause"]) == ("memory-pressure", "out-of-memory")
    assert first["title"].startswith("The device had no memory left, which ended the run: torch_device.py")
    assert ("The batch had 4 rows of 5,000 tokens; 1 of them, or as many of 2,2" in first["title"]) == is_said


def test_a_change_of_another_kind_is_refused_with_what_there_is(fullbore):
    said = fullbore.call("explain", "--what-if", "pin")
    assert said.code == 2 and "batch=64,seq=4096" in said.stderr
    said = fullbore.call("explain", "--what-if", "batch=many")
    assert said.code == 2 and "'batch=many' is no size of a batch" in said.stderr
