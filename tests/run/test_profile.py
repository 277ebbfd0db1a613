"""A run that ends by itself: `--for`, `--steps`, and when its verdict is sure."""

from __future__ import annotations

import os
import pathlib
import signal
import sys

import pytest

PATIENCE_S = 60

LOOP = """
import time
print("ready", flush=True)
while True:
    time.sleep(0.01)
"""
DEAF = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)" + LOOP
# What is saved on Ctrl-C is saved.
SAVES = """
import time
try:
    while True:
        time.sleep(0.01)
except KeyboardInterrupt:
    open("checkpoint", "w").write("saved")
    raise
"""
SERVER = """
import http.server
http.server.HTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler).serve_forever()
"""
# As torchrun starts its ranks: in sessions of their own, which Ctrl-C does not reach.
RANKS = """
import subprocess, sys, time
ranks = [subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"], start_new_session=True)
         for _ in range(2)]
open("pids", "w").write(" ".join(str(rank.pid) for rank in ranks))
try:
    time.sleep(1000)
finally:
    for rank in ranks if "orderly" in sys.argv else []:
        rank.terminate()
        rank.wait()
"""
TRAIN = """
import torch
model = torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
while True:
    optimizer.zero_grad()
    model(torch.randn(16, 8)).sum().backward()
    optimizer.step()
"""


def profile(fullbore, text: str, *arguments: str, flags: tuple[str, ...] = ("--for", "1s")):
    return fullbore.run(sys.executable, fullbore.script("script.py", text), *arguments, flags=flags)


def is_alive(pid: int) -> bool:
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def said_why(done) -> str:
    (note,) = [each for each in done.report["notes"] if "ended the command" in each]
    return note


@pytest.mark.parametrize("text", [LOOP, SERVER], ids=["loop", "server"])
def test_a_command_that_never_ends_is_ended_and_that_is_a_success(fullbore, text):
    done = profile(fullbore, text)
    assert done.code == 0, done.stderr
    assert done.report["exit_status"] == 0
    assert "after 1.0 s; its exit status was then 130" in said_why(done)
    assert "killed" not in done.stderr
    assert "the command is ended after 1.0 s" in done.stderr


def test_what_a_script_saves_on_ctrl_c_is_saved(fullbore):
    assert profile(fullbore, SAVES).code == 0
    assert (fullbore.directory / "checkpoint").read_text() == "saved"


@pytest.mark.long
def test_a_command_that_is_deaf_to_ctrl_c_is_terminated(fullbore):
    done = profile(fullbore, DEAF)
    assert done.code == 0, done.stderr
    assert "its exit status was then 143" in said_why(done)


@pytest.mark.long
@pytest.mark.parametrize("manner", ["orderly", "careless"])
def test_nothing_that_the_command_started_outlives_the_profile(fullbore, manner):
    done = profile(fullbore, RANKS, manner, flags=("--for", "2s"))
    assert done.code == 0, done.stderr
    pids = [int(pid) for pid in (fullbore.directory / "pids").read_text().split()]
    assert [pid for pid in pids if is_alive(pid)] == []


def test_a_command_that_ends_before_keeps_its_exit_status(fullbore):
    done = profile(fullbore, "raise SystemExit(7)", flags=("--for", "1h"))
    assert (done.code, done.report["exit_status"]) == (7, 7)
    assert "notes" not in done.report


@pytest.mark.long
def test_it_ends_after_so_many_steps(fullbore, torch_python):
    script = fullbore.script("train.py", TRAIN)
    done = fullbore.run(torch_python, script, flags=["--steps", "200", "--for", "1h"])
    assert done.code == 0, done.stderr
    assert done.report["window"]["steps"] >= 100  # without the warm-up
    assert " steps, in " in said_why(done)


def test_ctrl_c_is_the_users_until_the_time_is_over(fullbore):
    script = fullbore.script("script.py", LOOP)
    process, runs = fullbore.start(sys.executable, script, flags=["--for", "1h"])
    assert process.stdout.readline() == b"ready\n"
    os.killpg(process.pid, signal.SIGINT)
    process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 128 + signal.SIGINT
    (run_file,) = runs.glob("*.fbr")
    assert fullbore.explain(run_file)["exit_status"] == 128 + signal.SIGINT


@pytest.mark.parametrize("flags", [["--for", "soon"], ["--for", "0s"], ["--steps", "0"], ["--steps", "9", "--no-hook"]])
def test_what_cannot_be_meant_is_refused_before_anything_runs(fullbore, flags):
    done = fullbore.run("touch", "ran", flags=flags)
    assert done.code == 2
    assert not (fullbore.directory / "ran").exists()
