"""A script's own metrics from its logger to the report, its page, a comparison, CSV, /metrics and another tracker."""

from __future__ import annotations

import csv
import io
import json
import pathlib
import sys

import pytest

PACKAGE = pathlib.Path(__file__).resolve().parents[2] / "python"
SEARCH = {"PYTHONPATH": str(PACKAGE)}

TRAINING = """
import sys, time
import fullbore
from tensorboardX import SummaryWriter

writer, speed = SummaryWriter("board"), float(sys.argv[1])
for i in range(60):
    fullbore.step()
    writer.add_scalar("train/loss", speed / (i + 1), i * 10)
    if i % 20 == 19:
        print(f"step {i * 10}: val loss {2 * speed / (i + 1):.4f}")
    time.sleep(0.05)
"""


@pytest.fixture
def recorded(fullbore):
    script = fullbore.script("train.py", TRAINING)

    def record(speed: float) -> pathlib.Path:
        ended = fullbore.run(sys.executable, script, str(speed), env=SEARCH)
        assert ended.code == 0, ended.stderr
        return ended.run_file

    return record


@pytest.mark.long
def test_a_scripts_metrics_stand_beside_throughput(fullbore, recorded):
    run = recorded(6.0)
    report = fullbore.explain(run)
    loss, printed = report["logged"]
    assert (loss["name"], loss["loggers"], loss["rank"]) == ("train/loss", ["tensorboard"], 0)
    assert loss["first"] == 6.0 and loss["last"] == pytest.approx(0.1) and loss["last_step"] == 590
    assert loss["values"] + loss["thinned"] == 60
    assert (printed["name"], printed["loggers"], printed["values"]) == ("val loss", ["print"], 2)
    assert "logged" not in report["facts"] and not [key for key in report["resources"] if key.startswith("logged")]
    text = fullbore.call("explain", run).stdout.decode()
    assert "  logged by the script\n    train/loss  6 → 0.1 " in text

    rows = list(csv.DictReader(io.StringIO(fullbore.call("export", run, "--to", "csv").stdout.decode())))
    of_loss = [row for row in rows if row["series"] == "logged{metric=train/loss,rank=0}"]
    steps = [row for row in rows if row["series"] == "logged_step{metric=train/loss,rank=0}"]
    assert len(of_loss) == len(steps) == loss["values"]
    assert float(of_loss[-1]["value"]) == pytest.approx(0.1) and float(steps[-1]["value"]) == 590
    assert [row["t_s"] for row in of_loss] == [row["t_s"] for row in steps]


@pytest.mark.long
def test_two_runs_are_compared_where_both_have_been(fullbore, recorded):
    slow, fast = recorded(6.0), recorded(3.0)
    said = fullbore.call("compare", slow, fast, "--json", "-")
    changes = {change["what"]: change for change in json.loads(said.stdout)["logged"]}
    (loss,) = [change for what, change in changes.items() if what.startswith("train/loss at step 590")]
    assert loss["before"] == pytest.approx(2 * loss["after"], rel=0.1)
    text = fullbore.call("compare", slow, fast).stdout.decode()
    assert "logged by the script" in text and "train/loss at step 590" in text
    told = fullbore.call("compare", slow, fast, fast, "--markdown", "-")
    assert "| train/loss at step 590 |" in told.stdout.decode()


@pytest.mark.long
def test_it_goes_to_other_trackers_and_not_back(fullbore, recorded, tmp_path):
    run = recorded(6.0)
    said = fullbore.call("export", run, "--to", f"tensorboard:{tmp_path / 'export'}")
    assert said.code == 0, said.stderr
    (events,) = tmp_path.glob("export/*/events*")
    written = events.read_bytes()
    assert b"logged/val_loss" in written and b"fullbore/step_s" in written
    assert b"logged/train_loss" not in written, "TensorBoard has it from the script"


# A logger that does nothing, where W&B's would be.
STAND_IN = """
class Run:
    def log(self, data, step=None, commit=None):
        pass
"""
MILLION = """
import fullbore
from wandb.sdk.wandb_run import Run

run = Run()
for i in range(1_000_000):
    run.log({"loss": 1.0})
    if i % 1000 == 0:
        fullbore.step()
run.log({"loss": 9.0})
"""


@pytest.mark.long
def test_a_million_points_stay_a_small_file(fullbore, tmp_path):
    package = tmp_path / "stand_in" / "wandb" / "sdk"
    package.mkdir(parents=True)
    for name in (package.parent / "__init__.py", package / "__init__.py"):
        name.write_text("")
    (package / "wandb_run.py").write_text(STAND_IN)
    search = {"PYTHONPATH": f"{PACKAGE}:{package.parents[1]}"}
    ended = fullbore.run(sys.executable, fullbore.script("many.py", MILLION), env=search)
    assert ended.code == 0, ended.stderr
    (loss,) = fullbore.explain(ended.run_file)["logged"]
    # Two threads count without a lock.
    assert loss["values"] + loss["thinned"] == pytest.approx(1_000_001, abs=100) and loss["last"] == 9.0
    assert ended.run_file.stat().st_size < 4_000_000
