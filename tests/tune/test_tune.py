"""`fullbore tune`: what it finds, on programs whose best is known."""

from __future__ import annotations

import json
import os
import signal
import socketserver
import sqlite3
import subprocess
import sys
import threading
from collections import Counter

import pytest
from tune_scripts import WAITS, processes_with, tree

# Ten samples a second and worker, up to 30; more than a batch of 100 is more than its memory holds.
FARM = """
import sys, time
workers, batch = int(sys.argv[1]), int(sys.argv[2])
if batch > 100:
    raise MemoryError(f"a batch of {batch}")
while True:
    time.sleep(0.02)
    print(f"{min(30, 10 * workers) * batch / (batch + 1)} img/s")
"""
METRIC = ("--metric", "([0-9.]+) img/s")


@pytest.mark.long
def test_the_smallest_setting_near_the_best_is_recommended_and_memory_is_a_result(fullbore, tune):
    farm = fullbore.script("farm.py", FARM)
    values = ("--set", "workers=1,2,3,4", "--set", "batch_size=50,100,200")
    said = tune(*values, *METRIC, "--", sys.executable, farm, "{workers}", "{batch_size}")
    assert said["recommended"]["settings"] == {"workers": 3, "batch_size": 50}
    assert said["recommended"]["gain"]["expected"] == pytest.approx(3)
    assert any(trial["outcome"] == "out-of-memory" for trial in said["trials"])
    assert said["recommended"]["changes_results"] == [], "the batch stays as it was"
    assert f"{farm} 3 50" in " ".join(said["terminal"].split())


@pytest.mark.long
def test_a_larger_batch_is_recommended_with_what_it_may_change(fullbore, tune):
    farm = fullbore.script("farm.py", FARM.replace("batch + 1", "batch + 100"))
    said = tune("--set", "batch_size=50,100,200", *METRIC, "--", sys.executable, farm, "3", "{batch_size}")
    assert said["recommended"]["settings"] == {"batch_size": 100}
    assert "learning rate" in " ".join(said["recommended"]["changes_results"])


@pytest.mark.long
def test_workers_are_found_on_an_unmodified_script_with_a_patch_and_nothing_else_touched(fullbore, tune, torch_python):
    script = fullbore.script("train_to_tune.py", WAITS)
    before = tree(fullbore.directory)
    said = tune(
        *("--set", "num_workers=0,1,4", "--precision", "10%", "--most", "10s", "--patch", "change.diff"),
        *("--", torch_python, script),
    )
    workers = said["recommended"]["settings"]["num_workers"]
    assert workers == 4, "each sample sleeps: four workers sleep four at a time"
    assert said["recommended"]["gain"]["expected"] > 1.5
    assert said["recommended"]["patch"] == (fullbore.directory / "change.diff").read_text()
    assert " train_to_tune.py:" in said["terminal"], "the path from here"
    after = tree(fullbore.directory)
    assert {name: after[name] for name in before} == before
    assert set(after) - set(before) == {"answer.json", "change.diff"}
    assert processes_with("train_to_tune.py") == []
    subprocess.run(["patch", "-p1", "--dry-run", "-i", "change.diff"], cwd=fullbore.directory, check=True)


@pytest.mark.long
def test_the_patch_of_an_option_changes_its_default_and_applies(fullbore, tune, torch_python):
    options = "import argparse\np = argparse.ArgumentParser()\np.add_argument('--workers', type=int, default=0)  # ä\n"
    text = options + WAITS.replace("num_workers=0", "num_workers=p.parse_args().workers")
    script = fullbore.script("train_with_option.py", text)
    command = ("--set", "num_workers=0,4", "--precision", "10%", "--most", "5s", "--patch", "change.diff")
    said = tune(*command, "--", torch_python, script)
    assert said["recommended"]["by_hand"] == []
    subprocess.run(["git", "apply", "--check", "change.diff"], cwd=fullbore.directory, check=True)
    subprocess.run(["patch", "-s", "-p1", "-i", "change.diff"], cwd=fullbore.directory, check=True)
    assert script.read_text() == text.replace("default=0", "default=4")


@pytest.mark.long
def test_ctrl_c_keeps_what_was_measured_and_resume_goes_on_from_there(fullbore, tune):
    farm = fullbore.script("farm_slowly.py", FARM)
    command = ("--set", "workers=1,2,3,4", *METRIC, "--", sys.executable, farm, "{workers}", "50")
    started = fullbore.begin(fullbore.binary, "tune", *command)
    for line in started.stderr:
        if b"trial 3" in line:
            os.kill(started.pid, signal.SIGINT)
            break
    out, _ = started.communicate()
    assert started.returncode == 128 + signal.SIGINT
    assert "Not proven: workers=2, 2.00x when it was tried" in " ".join(out.decode().split())
    assert processes_with("farm_slowly.py") == []
    said = tune("--resume", *command)
    assert said["recommended"]["settings"] == {"workers": 3}
    runs = json.loads(fullbore.call("runs", "--json", "-").stdout)
    assert [run["tags"]["workers"] for run in runs].count("1") == 3, "once before, and twice for the proof"


# 300 as it is; with the change 511 and steady the first time that it is tried, then 250 and unsteady.
FADES = """
import random, socket, sys, time
with socket.create_connection(("127.0.0.1", int(sys.argv[2]))) as asked:
    asked.sendall(sys.argv[1].encode())
    tried = int(asked.recv(16))
rate, noise = (300, 0.01) if sys.argv[1] == "0" else (511, 0.01) if tried == 0 else (250, 0.2)
while True:
    time.sleep(0.02)
    print(f"{rate * max(0.1, random.gauss(1, noise)):.1f} img/s", flush=True)
"""


class TellsHowOften(socketserver.BaseRequestHandler):
    """How often the same was asked before: what a trial itself writes is gone after it."""

    def handle(self) -> None:
        word = self.request.recv(16).decode()
        self.request.sendall(str(self.server.asked[word]).encode())
        self.server.asked[word] += 1


@pytest.mark.long
def test_what_its_own_proof_refutes_is_not_recommended(fullbore, tune):
    fades = fullbore.script("fades.py", FADES)
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), TellsHowOften) as server:
        server.asked = Counter()
        threading.Thread(target=server.serve_forever, daemon=True).start()
        port = str(server.server_address[1])
        said = tune("--set", "n=0,1", *METRIC, "--most", "3s", "--", sys.executable, fades, "{n}", port)
        server.shutdown()
    assert said["recommended"]["settings"] == {"n": 0}
    (proof,) = said["proofs"]
    assert proof["verdict"] in ("no-gain", "open") and proof["gain"]["expected"] < 1
    assert f"n=1, {proof['gain']['expected']:.2f}x" in said["grounds"][0]


def test_apply_runs_the_command_with_the_settings_of_a_trial(fullbore, measure):
    program = fullbore.script("say.py", "import os, sys\nprint(sys.argv[1:], os.environ.get('FULLBORE_SETTINGS'))")
    trial = measure(
        *("--set", "lanes=3", "--set", "num_workers=2", "--metric", "(x)"), "--", sys.executable, program, "{lanes}"
    )
    done = fullbore.call("tune", "--apply", trial["run"], "--", sys.executable, program, "{lanes}")
    assert done.code == 0
    assert done.stdout.decode().splitlines()[0] == """['3'] {"num_workers":2}"""


def test_a_script_that_cannot_be_measured_says_why(fullbore, tune):
    said = tune("--set", "workers=1,2", *METRIC, "--", sys.executable, "-c", "raise ValueError('{workers}')", code=1)
    assert said["recommended"] is None
    assert said["trials"][0]["outcome"] == "crashed"
    assert "ValueError: 1" in said["terminal"]


def test_what_makes_no_sense_is_an_error_of_use(fullbore):
    for arguments, said in (
        (["--knobs", "worker"], "there is no knob 'worker'"),
        (["--set", "num_workers=0,x"], "not a whole number"),
        (["--objective", "joy"], "not one of throughput, tokens, cost and memory"),
        (["--objective", "tokens", "--metric", "(x)"], "not what --metric reads"),
        (["--exhaustive"], "--exhaustive tries all combinations"),
        (["--price", "cheap"], "not a price per hour"),
        (["--budget", "0"], "not a length of time"),
        (["--resume"], "no trials of this command are kept here"),
    ):
        done = fullbore.call("tune", *arguments, "--", "true")
        assert (done.code, said in done.stderr) == (2, True), done.stderr
    done = fullbore.call("tune", "--", "train", "{batch_size}")
    assert done.code == 2 and "which has no value" in done.stderr


def tagged(fullbore, measure, **tags: str) -> str:
    """A run with these tags, as somebody else might have made it."""
    run = measure("--metric", "(x)", "--", sys.executable, "-c", "print('x')")["run"]
    database = sqlite3.connect(fullbore.directory / ".fullbore" / "runs" / f"{run}.fbr")
    database.executemany("INSERT INTO tag VALUES (?, ?)", tags.items())
    database.commit()
    database.close()
    return run


@pytest.mark.parametrize(
    ("tags", "said"),
    [
        ({"num_workers": "1000000"}, "num_workers=1000000: not a whole number from 0 to 1024"),
        ({"intraop_threads": "-5"}, "intraop_threads=-5: not a whole number"),
        ({"cpu_affinity": "0;touch PWNED"}, "not a list of cores"),
        ({"colour": "blue"}, "'colour' is not a setting, and {colour} is not in the command"),
        ({"batch": ""}, "is not a setting"),
        ({"num_workers=3": "4"}, "is not a setting"),
        *(
            ({"batch": text}, "is not plain")
            for text in (
                *("64; touch PWNED", "$(touch PWNED)", "`touch PWNED`", "a b", "a\ntouch PWNED", "'", '"', "*", "a&b"),
                *("-rf", "--config=x", "~", "a>b", "a|b", "{batch}", "\\a", "a!b", "#", "ä"),
            )
        ),
    ],
)
def test_apply_refuses_what_set_would_and_what_is_not_plain(fullbore, measure, tags, said):
    run = tagged(fullbore, measure, **tags)
    done = fullbore.call("tune", "--apply", run, "--", "sh", "-c", "touch RAN; echo {batch}")
    assert done.code == 2
    assert "--apply: " in done.stderr and said in done.stderr
    assert not (fullbore.directory / "RAN").exists()
    assert not (fullbore.directory / "PWNED").exists()


def test_apply_shows_what_it_runs_before_it_does(fullbore, measure):
    run = tagged(fullbore, measure, tune="0123", batch="a/b-c_1.5:+,x", num_workers="2", lanes="-3")
    command = ("sh", "-c", "echo {batch} {lanes}; echo begun >&2", "--api-key", "hunter2")
    done = fullbore.call("tune", "--apply", run, "--", *command)
    assert (done.code, done.stdout.decode().splitlines()[0]) == (0, "a/b-c_1.5:+,x -3")
    shown = "fullbore: with batch=a/b-c_1.5:+,x lanes=-3 num_workers=2: sh -c 'echo a/b-c_1.5:+,x -3; echo begun >&2'"
    assert done.stderr.splitlines()[0] == shown + " --api-key '***'"


def test_the_budget_ends_a_trial_that_has_not_begun_to_train_and_is_the_reason(fullbore, tune):
    code = "import time, sys; print(sys.argv); time.sleep(600)"
    said = tune("--budget", "2s", "--html", "page.html", "--", sys.executable, "-c", code, "endless", code=1)
    why = "the budget of 2 s ended before a first step was seen; a longer --budget gives it more time"
    assert [(trial["outcome"], trial["why"]) for trial in said["trials"]] == [("ended-early", why)]
    assert (said["recommended"], said["reason"]) == (None, why)
    assert f"Nothing could be measured: {why}" in " ".join(said["terminal"].split())
    assert f"Nothing could be measured: {why}" in (fullbore.directory / "page.html").read_text()
    assert processes_with("time.sleep(600)") == []


@pytest.mark.long
def test_a_search_that_the_budget_ends_says_so_and_tries_again_what_was_not_measured(fullbore, tune):
    stuck = "import os, sys, time\nif sys.argv[1] == '2' and os.path.exists('stuck'):\n    time.sleep(600)\n"
    farm = fullbore.script("farm_stuck.py", stuck + FARM)
    (fullbore.directory / "stuck").touch()
    command = ("--set", "workers=1,2", *METRIC, "--", sys.executable, farm, "{workers}", "50")
    said = tune("--budget", "20s", *command)
    assert said["recommended"]["settings"] == {"workers": 1}
    assert said["reason"] == "the budget of 20 s ended before everything was tried and proven"
    assert "not everything was tried: the budget of 20 s ended" in said["terminal"]
    assert said["trials"][-1]["why"].startswith("the budget of 20 s ended before a first value was printed")
    (fullbore.directory / "stuck").unlink()
    said = tune("--resume", *command)
    assert said["recommended"]["settings"] == {"workers": 2}
    assert said["reason"] is None


def test_interrupted_before_anything_was_measured_is_said(fullbore):
    program = fullbore.script("endless_tune.py", "import time\nwhile True:\n    time.sleep(0.1)")
    started = fullbore.begin(fullbore.binary, "tune", "--json", "answer.json", "--", sys.executable, program)
    assert b"trial 1" in started.stderr.readline()
    os.kill(started.pid, signal.SIGINT)
    out, _ = started.communicate()
    assert started.returncode == 128 + signal.SIGINT
    assert "Nothing could be measured: it was interrupted before" in out.decode()
    reason = json.loads((fullbore.directory / "answer.json").read_text())["reason"]
    assert reason == "it was interrupted before the script as it is was measured"


@pytest.mark.long
@pytest.mark.parametrize("under_the_name_of_samples", [True, False])
def test_steps_are_not_called_samples_in_an_answer_that_goes_on_from_kept_trials(
    fullbore, tune, under_the_name_of_samples
):
    farm = fullbore.script("farm_steps.py", FARM)
    command = ("--set", "workers=1,2", *METRIC, "--", sys.executable, farm, "{workers}", "50")
    samples = tune(*command)["baseline"]
    assert (samples["unit"], samples["steps_per_s"]) == ("samples/s", None)
    (kept,) = (fullbore.directory / ".fullbore" / "runs").glob("tune-*.jsonl")
    lines = [json.loads(line) for line in kept.read_text().splitlines()]
    for line in lines[1:]:
        line["unit"] = "steps/s"
        rate = line.pop("samples_per_s")
        line.pop("steps_per_s")
        line["samples_per_s" if under_the_name_of_samples else "steps_per_s"] = rate
    kept.write_text("".join(json.dumps(line) + "\n" for line in lines))
    said = tune("--resume", *command)
    for each in (said["baseline"], said["recommended"], *said["trials"], *said["pareto"]):
        assert (each["unit"], each["samples_per_s"]) == ("steps/s", None)
        assert each["steps_per_s"] > 0
    assert "steps/s" in said["terminal"] and "samples/s" not in said["terminal"]
