"""`--on slurm`, against a real cluster of one node: trials as jobs, and what a cluster does to jobs."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest
from slurm_cluster import cluster, missing, said
from tune_scripts import PRINTS, processes_with

METRIC = ("--metric", "([0-9.]+) img/s")


@pytest.fixture(scope="module")
def slurm(tmp_path_factory) -> Iterator[dict[str, str]]:
    if missing():
        pytest.skip(missing())
    with cluster(tmp_path_factory.mktemp("slurm")) as environment:
        yield environment


@pytest.fixture
def submit(fullbore, slurm):
    """Starts `fullbore measure --on slurm` and returns the process."""

    def start(*arguments) -> subprocess.Popen:
        command = [fullbore.binary, "measure", "--json", "-", "--on", "slurm", *arguments]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        return subprocess.Popen([str(word) for word in command], env=slurm, cwd=fullbore.directory, **pipes)

    return start


def jobs(slurm: dict[str, str]) -> list[str]:
    return said(["squeue", "--noheader", "--format=%i %T"], slurm).splitlines()


def wait_for_a_running_job(slurm: dict[str, str]) -> str:
    for _ in range(300):
        running = [line.split()[0] for line in jobs(slurm) if line.endswith("RUNNING")]
        if running:
            return running[0]
        time.sleep(0.1)
    raise AssertionError(f"no job runs: {jobs(slurm)}")


@pytest.mark.long
def test_a_trial_is_a_job_whose_run_lies_in_the_store(fullbore, slurm, submit):
    program = fullbore.script("prints.py", PRINTS)
    process = submit("--set", "batch=32", *METRIC, "--", sys.executable, program, "{batch}")
    line, log = process.communicate(timeout=120)
    assert process.returncode == 0, log
    trial = json.loads(line)
    assert (trial["outcome"], trial["samples_per_s"], trial["settings"]) == ("ok", 320, {"batch": 32})
    runs = json.loads(fullbore.call("runs", "--json", "-").stdout)
    assert [run["id"] for run in runs] == [trial["run"]]
    assert "job " in log and "batch=32" in log
    assert not (fullbore.directory / ".fullbore" / "runs" / "slurm").exists(), "nothing of the job is left"


@pytest.mark.long
def test_tune_makes_its_trials_on_the_cluster(fullbore, slurm):
    program = fullbore.script("prints.py", PRINTS)
    command = [fullbore.binary, "tune", "--on", "slurm", "--json", "answer.json", "--set", "batch=8,16", *METRIC, "--"]
    command += [sys.executable, program, "{batch}"]
    done = subprocess.run(command, env=slurm, cwd=fullbore.directory, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    answer = json.loads((fullbore.directory / "answer.json").read_text())
    assert answer["recommended"]["settings"] == {"batch": 16}
    assert all(trial["outcome"] == "ok" for trial in answer["trials"])
    assert "job " in done.stderr


@pytest.mark.long
def test_combinations_are_jobs_at_the_same_time(fullbore, slurm):
    program = fullbore.script("prints.py", PRINTS)
    command = [fullbore.binary, "tune", "--on", "slurm", "--jobs", "2", "--exhaustive", "--set", "batch=8,16,32,64"]
    command += ["--json", "answer.json", *METRIC, "--", sys.executable, program, "{batch}"]
    done = subprocess.run(command, env=slurm, cwd=fullbore.directory, capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stderr
    answer = json.loads((fullbore.directory / "answer.json").read_text())
    tried = [trial["settings"]["batch"] for trial in answer["trials"]]
    assert tried[:4] == [8, 16, 32, 64], "in the order in which they were given"
    assert answer["recommended"]["settings"] == {"batch": 64}
    told = re.findall(r"fullbore:( job |   )", done.stderr)
    grid = told[2:]  # the script as it is was a job before them: it is submitted, and ends
    assert grid[:2] == [" job ", " job "], "two are submitted before the first of them has ended"
    assert grid[2] == "   "


@pytest.mark.long
def test_a_job_that_gives_way_to_another_begins_anew(fullbore, slurm, submit):
    waits = "import os, time\nif not os.environ.get('SLURM_RESTART_COUNT'):\n    time.sleep(600)\n"
    program = fullbore.script("prints.py", waits + PRINTS)
    process = submit("--partition", "low", *METRIC, "--", sys.executable, program, "7")
    job = wait_for_a_running_job(slurm)
    urgent = subprocess.run(
        ["srun", "--partition=high", "--exclusive", "sleep", "1"], env=slurm, capture_output=True, text=True, timeout=60
    )
    assert urgent.returncode == 0, urgent.stderr
    line, log = process.communicate(timeout=240)
    assert process.returncode == 0, log
    assert json.loads(line)["samples_per_s"] == 70
    assert "Restarts=1" in said(["scontrol", "show", "job", job], slurm)


@pytest.mark.long
def test_a_trial_outlives_the_loss_of_its_node(fullbore, slurm, submit):
    program = fullbore.script("prints.py", PRINTS)
    process = submit(*METRIC, "--", sys.executable, program, "7")
    wait_for_a_running_job(slurm)
    (node,) = said(["sinfo", "--noheader", "--Node", "--partition=low", "--format=%N"], slurm).split()
    lose = ["scontrol", "update", f"NodeName={node}", "State=DOWN", "Reason=lost"]
    subprocess.run(lose, env=slurm, check=True)  # it comes back by itself: its slurmd still runs
    line, log = process.communicate(timeout=240)
    assert process.returncode == 0, log
    assert json.loads(line)["samples_per_s"] == 70


def test_ctrl_c_cancels_the_job(fullbore, slurm, submit):
    program = fullbore.script("prints_for_long.py", PRINTS)
    process = submit("--most", "10m", "--precision", "0.01%", "--", sys.executable, program, "7")
    wait_for_a_running_job(slurm)
    process.send_signal(signal.SIGINT)
    _, log = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGINT, log
    for _ in range(200):
        if not jobs(slurm):
            break
        time.sleep(0.1)
    assert jobs(slurm) == []
    assert processes_with("prints_for_long.py") == []


def test_what_the_cluster_refuses_is_an_error_with_its_words(fullbore, submit):
    process = submit("--partition", "no-such", *METRIC, "--", sys.executable, "-c", "")
    _, log = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "sbatch refused the job" in log and "partition" in log
    assert "sinfo" in log, "the next step"


def test_a_command_that_cannot_be_measured_says_why(fullbore, submit):
    process = submit(*METRIC, "--", "no-such-program-anywhere")
    _, log = process.communicate(timeout=180)
    assert process.returncode == 1
    assert "no-such-program-anywhere" in log


def test_without_a_cluster_it_says_what_is_missing(fullbore):
    done = fullbore.call("measure", "--on", "slurm", "--", "true", env={"PATH": os.path.dirname(sys.executable)})
    assert done.code == 2
    assert "sbatch" in done.stderr


@pytest.mark.parametrize(
    ("flags", "why"),
    [
        (["--on", "kubernetes"], "not a place for trials"),
        (["--partition", "x"], "--on slurm"),
        (["--on", "slurm", "--jobs", "0"], "--jobs 0"),
    ],
)
def test_flags_that_make_no_sense_are_refused(fullbore, flags, why):
    done = fullbore.call("measure", *flags, "--", "true")
    assert done.code == 2
    assert why in done.stderr
