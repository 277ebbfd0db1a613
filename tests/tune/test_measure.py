"""`fullbore measure`: one setting, one fresh process, one line of JSON."""

from __future__ import annotations

import json
import os
import signal
import sys
import time

import pytest
from tune_scripts import PRINTS, WAITS, processes_with, tree


def test_a_program_in_any_language_is_measured_by_what_it_prints(fullbore, measure):
    program = fullbore.script("prints.py", PRINTS)
    said = measure("--set", "batch=32", "--metric", "([0-9.]+) img/s", "--", sys.executable, program, "{batch}")
    assert said["outcome"] == "ok"
    assert said["samples_per_s"] == 320
    assert said["ci95"] == [320, 320]
    assert said["settings"] == {"batch": 32}


def test_a_trial_is_an_ordinary_run_in_the_store(fullbore, measure):
    program = fullbore.script("prints.py", PRINTS)
    said = measure("--set", "batch=32", "--metric", "([0-9.]+) img/s", "--", sys.executable, program, "{batch}")
    runs = json.loads(fullbore.call("runs", "--json", "-").stdout)
    assert [(run["id"], run["tags"]) for run in runs] == [(said["run"], {"batch": "32"})]


@pytest.mark.long
def test_settings_reach_an_unmodified_script_and_its_files_stay_as_they_were(fullbore, measure, torch_python):
    script = fullbore.script("train_waits.py", WAITS.replace("0.004", "0.02"))
    (fullbore.directory / "log.txt").write_text("mine\n")
    before = tree(fullbore.directory)
    command = ("--precision", "10%", "--", torch_python, script)
    plain, workers = measure(*command), measure("--set", "num_workers=3", *command)
    assert (plain["outcome"], workers["outcome"]) == ("ok", "ok")
    assert workers["ci95"][0] > 1.5 * plain["ci95"][1], "three processes sleep at the same time"
    assert plain["ci95"][0] < plain["samples_per_s"] < plain["ci95"][1]
    assert tree(fullbore.directory) == before
    assert processes_with("train_waits.py") == []


def test_what_cannot_be_set_is_refused_with_the_reason(fullbore, measure, torch_python):
    script = fullbore.script("train.py", WAITS)
    said = measure("--set", "pin_memory=true", "--", torch_python, script)
    assert said["outcome"] == "refused"
    assert said["why"].startswith("pin_memory: ")
    assert said["samples_per_s"] is None


def test_memory_crashes_and_short_programs_are_results(fullbore, measure):
    def outcome(code: str) -> tuple[str, str]:
        said = measure("--metric", "([0-9]+) img/s", "--", sys.executable, "-c", code)
        return said["outcome"], said.get("why", "")

    assert outcome("raise MemoryError('for the batch')") == ("out-of-memory", "MemoryError: for the batch")
    crashed, why = outcome("raise ValueError('no such file')")
    assert crashed == "crashed" and why.endswith("ValueError: no such file")
    assert outcome("print('1 img/s')")[0] == "ended-early"


def test_where_memory_ends_a_trial_is_what_the_kernel_ends_first(fullbore, measure):
    code = "while True: print('score', open('/proc/self/oom_score_adj').read(), flush=True)"
    said = measure("--metric", "score ([0-9]+)", "--", sys.executable, "-c", code)
    assert said["samples_per_s"] == 1000


def test_a_program_that_does_nothing_hangs(fullbore, measure):
    said = measure("--patience", "1s", "--", sys.executable, "-c", "import time; time.sleep(600)")
    assert (said["outcome"], said["why"]) == ("hung", "no first step")


@pytest.mark.long
def test_whatever_ignores_its_end_is_ended_with_all_that_it_started(fullbore, measure):
    stubborn = fullbore.script(
        "stubborn.py",
        """
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if len(sys.argv) == 1:  # one in a session of its own, as torchrun's workers are
    subprocess.Popen([sys.executable, __file__, "child"], start_new_session=True)
while True:
    time.sleep(0.05)
    print("5 img/s")
""",
    )
    said = measure("--metric", "([0-9]+) img/s", "--", sys.executable, stubborn)
    assert said["outcome"] == "ok"
    assert processes_with("stubborn.py") == []


def test_ctrl_c_leaves_no_process_and_no_files(fullbore, tmp_path):
    program = fullbore.script("endless.py", "import time\nprint('begun')\ntime.sleep(600)")
    temporary, kept = tmp_path / "temporary", tmp_path / "kept"
    temporary.mkdir()
    started = fullbore.begin(
        fullbore.binary, "measure", "-o", kept, "--", sys.executable, program, env={"TMPDIR": str(temporary)}
    )
    wait_for_output(started, kept)
    os.kill(started.pid, signal.SIGINT)
    assert started.wait() == 128 + signal.SIGINT
    assert processes_with("endless.py") == []
    assert list(temporary.iterdir()) == []
    assert [path.suffix for path in kept.iterdir()] == [".fbr"]


@pytest.mark.long
def test_under_nohup_the_end_of_a_session_ends_nothing(fullbore, tmp_path):
    (tmp_path / "go-on").touch()
    waits = "import os, sys, time\nprint('5 img/s', flush=True)\nwhile os.path.exists(sys.argv[1]): time.sleep(0.01)"
    program, kept = fullbore.script("waits.py", waits), tmp_path / "kept"
    measured = ("measure", "-o", kept, "--metric", "([0-9]+) img/s")
    command = (sys.executable, program, tmp_path / "go-on")
    started = fullbore.begin("nohup", fullbore.binary, *measured, "--", *command)
    wait_for_output(started, kept)
    os.kill(started.pid, signal.SIGHUP)
    (tmp_path / "go-on").unlink()
    said, _ = started.communicate()
    assert started.returncode == 0 and json.loads(said)["outcome"] in ("ok", "ended-early")


def wait_for_output(started, kept):
    while not any(path.stat().st_size for path in kept.glob("*/output")):
        assert started.poll() is None
        time.sleep(0.01)


def test_what_makes_no_sense_is_an_error_of_use(fullbore):
    for arguments, said in (
        (["--set", "num_worker=2"], "did you mean num_workers?"),
        (["--set", "num_workers=-1"], "not a whole number"),
        (["--set", "num_workers"], "not of the form"),
        (["--metric", "no group"], "has no group"),
        (["--precision", "2"], "is not a ratio"),
    ):
        done = fullbore.call("measure", *arguments, "--", "true")
        assert done.code == 2
        assert said in done.stderr
    assert fullbore.call("measure").code == 2
