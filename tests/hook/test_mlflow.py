"""The hook sees which run of MLflow a script has open. A module of that name stands for it: the real one is asked in
tests/trackers."""

from __future__ import annotations

import os
import pathlib

import pytest

SITE = pathlib.Path(__file__).resolve().parents[2] / "python" / "fullbore" / "hook" / "site"

MLFLOW = """
class Info:
    def __init__(self, run_id):
        self.run_id = run_id

class Run:
    def __init__(self, run_id):
        self.info = Info(run_id)

class MlflowClient:
    tracking_uri = "http://other:5000"
    def create_run(self, experiment_id):
        return Run("client-" + experiment_id)

def get_tracking_uri():
    return "https://me:secret@host:5000/a"

opened = []

def active_run():
    return opened[-1] if opened else None

def start_run(run_id="opened"):
    if run_id is None:
        raise ValueError("no run")
    opened.append(Run(run_id))
    return opened[-1]
"""


@pytest.fixture
def beside(tmp_path: pathlib.Path) -> dict[str, str]:
    (tmp_path / "stand_in").mkdir()
    (tmp_path / "stand_in" / "mlflow.py").write_text(MLFLOW)
    return {"PYTHONPATH": os.pathsep.join(map(str, [SITE, SITE.parents[2], tmp_path / "stand_in"]))}


SCRIPT = """
    import {modules}
    print(mlflow.{call}.info.run_id)
    fullbore.step()
"""


@pytest.mark.parametrize("modules", ["mlflow, fullbore", "fullbore, mlflow"])
@pytest.mark.parametrize(
    ("call", "run", "uri"),
    [
        ("start_run()", "opened", "https://host:5000/a"),
        ('MlflowClient().create_run("7")', "client-7", "http://other:5000"),
    ],
)
def test_the_run_that_the_script_opens_is_a_fact_without_its_password(bare, beside, call, run, uri, modules):
    channel, output = bare.run(SCRIPT.replace("{call}", call).replace("{modules}", modules), env=beside)
    assert output == f"{run}\n"
    (process,) = channel.trainers
    assert process.facts["mlflow_run"] == {"id": run, "uri": uri}


def test_a_run_that_was_open_before_the_framework_was_imported_is_seen(bare, beside):
    script = "import mlflow\nmlflow.start_run('early')\nimport fullbore\nfullbore.step()\n"
    channel, _ = bare.run(script, env=beside)
    (process,) = channel.trainers
    assert process.facts["mlflow_run"]["id"] == "early"


def test_an_error_of_mlflow_is_the_scripts(bare, beside):
    script = (
        "import fullbore, mlflow\ntry:\n    mlflow.start_run(None)\nexcept ValueError as error:\n    print(error)\n"
    )
    done, _ = bare.start([bare.python, bare.script(script)], beside)
    assert (done.stdout, done.stderr) == ("no run\n", "")
