"""One job whole: a training that saves, dies and is started again, whose own clock says what was lost."""

from __future__ import annotations

import json
import os
import signal
import sys
import textwrap
import time

import pytest
from jobs import TRAIN, job, seconds


def slurm(restarts: int = 0, **more: str) -> dict[str, str]:
    return {"SLURM_JOB_ID": "4711", **({"SLURM_RESTART_COUNT": str(restarts)} if restarts else {}), **more}


def train(fullbore, die_at: int, name: str, env: dict[str, str], code: int) -> dict[str, float]:
    script = fullbore.script("train.py", textwrap.dedent(TRAIN))
    truth = fullbore.directory / f"{name}.json"
    command = (sys.executable, script, str(die_at), truth)
    done = fullbore.call("run", "-o", "runs", "--name", name, "-q", "--", *command, env=env)
    assert done.code == code, done.stderr
    return json.loads(truth.read_text())


@pytest.mark.rounds  # on a quiet machine
def test_what_was_lost_is_what_its_own_clock_says(fullbore):
    started = int(time.time())
    allocation = slurm(
        SLURM_JOB_START_TIME=str(started), SLURM_JOB_END_TIME=str(started + 86400), SLURM_CPUS_ON_NODE="64"
    )
    died = train(fullbore, 290, "first", allocation, 9)
    ended = train(fullbore, -1, "second", allocation, 0)
    found = job(fullbore, "4711", "runs")
    paid = found["paid_ns"] / 1e9
    assert [run["state"] for run in found["runs"]] == ["ended", "ended"]
    assert [run.get("exit_status") for run in found["runs"]] == [9, 0]
    assert died["lost"] > 0.06 * paid
    assert seconds(found, "lost") / paid == pytest.approx(died["lost"] / paid, abs=0.05)
    assert seconds(found, "lost") == pytest.approx(died["lost"], rel=0.1)  # the same moments, by another clock
    assert seconds(found, "lost", 2) == 0
    for what, kind in (("saving", "checkpoint"), ("validating", "validation")):
        took = ended[what] + died[what]
        assert took > 0.03 * paid
        assert seconds(found, kind) / paid == pytest.approx(took / paid, abs=0.03), kind
    # One allocation: what lies before and between the runs was paid, and all of it since it began is in the bars.
    last_ns = max(run["end_unix_ns"] for run in found["runs"])
    assert paid == pytest.approx(last_ns / 1e9 - started, abs=0.01)
    assert found["use"]["cores_given"] == 64
    assert found["use"]["cores_mean"] < 4
    assert found["use"]["time_given_ns"] == 86400 * 10**9
    text = fullbore.call("fleet", "job", "4711", "runs").stdout.decode()
    assert "lost steps" in text and "exit 9" in text


@pytest.mark.rounds
def test_a_run_that_was_cut_off_is_over_once_the_job_has_begun_again(fullbore):
    script = fullbore.script("train.py", textwrap.dedent(TRAIN))
    command = (sys.executable, script, "-1", fullbore.directory / "never.json")
    runs = fullbore.directory / "runs"
    running, _ = fullbore.start(*command, flags=["-q", "--name", "first"], env=slurm(), runs=runs)
    saved = fullbore.directory / "checkpoint.pt"
    while not saved.exists():
        time.sleep(0.1)
        assert running.poll() is None
    time.sleep(1.5)  # steps that will be lost
    os.killpg(running.pid, signal.SIGKILL)
    running.communicate()
    alone = job(fullbore, "4711", runs)
    assert alone["goes_on"]  # for all that is known
    train(fullbore, -1, "second", slurm(restarts=1), 0)
    found = job(fullbore, "4711", runs)
    assert [run["state"] for run in found["runs"]] == ["cut off", "ended"]
    assert seconds(found, "lost", 1) > 0.3
    assert [gap["paid"] for gap in found["gaps"]] == [False]
    assert "between" not in [bar["kind"] for bar in found["bars"]]
    assert "the job waited to be started again" in " ".join(found["notes"])


def run(fullbore, *command: str, env: dict[str, str] | None = None) -> None:
    fullbore.call("run", "-o", "runs", "-q", "--", *command, env=env)


def test_a_job_is_found_by_its_id_and_no_other_runs_are_in_it(fullbore):
    run(fullbore, "true", env=slurm())
    run(fullbore, "false", env=slurm())
    run(fullbore, "true", env={"SLURM_JOB_ID": "47"})
    run(fullbore, "true")
    found = job(fullbore, "4711", "runs")
    assert [each["exit_status"] for each in found["runs"]] == [0, 1]
    assert {bar["kind"] for bar in found["bars"]} == {"not judged", "between"}
    assert len(job(fullbore, "47", "runs")["runs"]) == 1
    alone = job(fullbore, found["runs"][1]["id"], "runs")
    assert [each["id"] for each in alone["runs"]] == [found["runs"][1]["id"]]


def test_a_run_on_several_machines_is_one_of_its_runs(fullbore):
    step = {"SLURM_STEP_ID": "0", "SLURM_STEP_NUM_NODES": "2", "SLURM_STEP_NUM_TASKS": "2"}
    for node in ("gpu-1", "gpu-2"):
        run(fullbore, "true", env=slurm(**step, SLURMD_NODENAME=node))
    run(fullbore, "true", env=slurm(SLURM_STEP_ID="1"))
    found = job(fullbore, "4711", "runs")
    assert [each["machines"] for each in found["runs"]][0] == ["gpu-1", "gpu-2"]
    assert len(found["runs"]) == 2


def test_a_database_knows_where_the_runs_are(fullbore):
    run(fullbore, "true", env=slurm())
    assert fullbore.call("fleet", "collect", "runs", "--to", "fleet.db").code == 0
    (fullbore.directory / "elsewhere").mkdir()
    assert len(job(fullbore, "4711", "--from", "fleet.db")["runs"]) == 1
    for file in (fullbore.directory / "runs").glob("*.fbr"):
        file.unlink()
    gone = fullbore.call("fleet", "job", "4711", "--from", "fleet.db")
    assert gone.code == 2
    assert "no run of a job '4711' in fleet.db" in gone.stderr


def test_what_is_wrong_is_said_with_the_next_step(fullbore):
    (fullbore.directory / "runs").mkdir()
    nothing = fullbore.call("fleet", "job", "4711", "runs")
    assert nothing.code == 2
    assert "no run of a job '4711' in runs" in nothing.stderr
    assert "fullbore fleet job 4711 DIR..." in nothing.stderr
    assert fullbore.call("fleet", "job").code == 2
    assert fullbore.call("fleet", "job", "4711", "nowhere").code == 2
    assert fullbore.call("fleet", "job", "4711", "runs", "--from", "fleet.db").code == 2
