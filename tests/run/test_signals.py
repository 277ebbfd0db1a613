"""No signal ends the recorder while the command runs: signals meant for the command are passed on to it."""

from __future__ import annotations

import os
import pathlib
import select
import signal
import subprocess
import sys
import time

import pytest

PATIENCE_S = 60

# Prints the signals that reach it, and exits when "enough" exists.
LISTEN = """
import os, signal
heard = signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD}
signal.pthread_sigmask(signal.SIG_BLOCK, heard)
print("ready", os.getpid(), flush=True)
while not os.path.exists("enough"):
    got = signal.sigtimedwait(heard, 0.05)
    if got is not None:
        print(got.si_signo, flush=True)
raise SystemExit(5)
"""

# What stops us, what we cannot distinguish from our own, and what means nothing to a command that is not stopped.
NOT_PASSED_ON = {signal.SIGPIPE, signal.SIGXFSZ, signal.SIGCHLD, signal.SIGCONT}
STOPS = {signal.SIGKILL, signal.SIGSTOP, signal.SIGTTIN, signal.SIGTTOU}
ALL = sorted(signal.valid_signals() - STOPS)


def heard(process: subprocess.Popen) -> int:
    ready, _, _ = select.select([process.stdout], [], [], PATIENCE_S)
    assert ready, "the command heard nothing"
    return int(process.stdout.readline())


def test_no_signal_kills_the_recorder_and_what_is_sent_to_it_reaches_the_command(fullbore):
    script = fullbore.script("listen.py", LISTEN)
    process, runs = fullbore.start(sys.executable, script)
    assert process.stdout.readline().startswith(b"ready")
    for number in ALL:
        os.kill(process.pid, number)
        if number not in NOT_PASSED_ON:
            assert heard(process) == number
    assert process.poll() is None
    (fullbore.directory / "enough").touch()
    out, err = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, out) == (5, b""), err
    (run_file,) = runs.glob("*.fbr")
    assert fullbore.explain(run_file)["exit_status"] == 5


def is_alive(pid: int) -> bool:
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


@pytest.mark.long
def test_an_alarm_set_before_us_belongs_to_the_command(fullbore):
    """As in `perl -e 'alarm 60; exec @ARGV' fullbore run -- ...`: an alarm outlives exec, but not fork."""
    pid_file = fullbore.directory / "pid"
    sleeps = ["sh", "-c", f"echo $$ >{pid_file}; exec sleep 1000"]
    process = fullbore.begin(*fullbore.arguments(sleeps, ["-q", "-o", "runs"]), preexec_fn=lambda: signal.alarm(3))
    # On a slow machine it may fire before the command has started, as it could without us.
    assert process.wait(PATIENCE_S) in (128 + signal.SIGALRM, -signal.SIGALRM)
    if pid_file.exists():
        deadline = time.monotonic() + PATIENCE_S
        while is_alive(int(pid_file.read_text())):
            assert time.monotonic() < deadline, "the command is orphaned"
            time.sleep(0.05)


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS])
def test_a_fault_signal_sent_to_us_reaches_the_command_too(fullbore, number):
    """`kill -ABRT` for a stack trace: our exit status shows what the command died of."""
    process, runs = fullbore.start("sh", "-c", "echo ready; exec sleep 1000")
    assert process.stdout.readline() == b"ready\n"
    os.kill(process.pid, number)
    process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 128 + number
    (run_file,) = runs.glob("*.fbr")
    assert fullbore.explain(run_file)["exit_status"] == 128 + number
