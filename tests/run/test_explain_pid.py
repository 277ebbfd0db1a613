"""What `explain --pid` says where it cannot look, and that a process is left as it was."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FULLBORE = Path(os.environ.get("FULLBORE", ROOT / "build/release/fullbore"))
WITH_PY_SPY = os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", "")])


def explain(*arguments: object, path: str = WITH_PY_SPY, **options: object) -> subprocess.CompletedProcess:
    command = [str(part) for part in (FULLBORE, "explain", *arguments)]
    return subprocess.run(
        command, env={**os.environ, "PATH": path}, capture_output=True, text=True, timeout=60, **options
    )


@pytest.fixture
def python() -> Iterator[subprocess.Popen]:
    """A Python that trains nothing."""
    with subprocess.Popen(
        [sys.executable, "-c", "print(flush=True)\nimport time\nwhile 1: time.sleep(0.01)"], stdout=subprocess.PIPE
    ) as process:
        process.stdout.readline()
        yield process
        process.kill()


def test_a_process_that_does_not_exist_is_named() -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()
    result = explain("--pid", gone.pid)
    assert result.returncode == 2
    assert f"there is no process {gone.pid}" in result.stderr


def test_another_program_is_refused_and_its_python_child_named() -> None:
    script = f"{sys.executable} -c 'print(flush=True); import time; time.sleep(60)'; true"
    with subprocess.Popen(["sh", "-c", script], stdout=subprocess.PIPE, start_new_session=True) as shell:
        shell.stdout.readline()
        result = explain("--pid", shell.pid)
        os.killpg(shell.pid, signal.SIGKILL)
    assert result.returncode == 1
    assert f"process {shell.pid} (sh) does not run Python" in result.stderr
    assert "its child" in result.stderr and "fullbore explain --pid" in result.stderr


def test_without_py_spy_the_message_says_how_to_get_it(tmp_path: Path) -> None:
    interpreter = os.path.realpath(sys.executable)
    if os.path.exists(os.path.join(os.path.dirname(interpreter), "py-spy")):
        pytest.skip("py-spy lies beside the interpreter itself")
    script = "print(flush=True); import time; time.sleep(60)"
    with subprocess.Popen(["python3", "-c", script], executable=interpreter, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        result = explain("--pid", process.pid, path=str(tmp_path))
        process.kill()
    assert result.returncode == 1
    assert "py-spy, which reads the stacks of a running Python, is not installed" in result.stderr
    assert "pip install py-spy" in result.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_somebody_elses_process_is_refused_with_the_owners_name(python: subprocess.Popen, tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    probe = subprocess.run([FULLBORE, "--version"], user=65534, capture_output=True)
    if probe.returncode != 0:
        pytest.skip("the program lies where others may not enter")
    result = explain("--pid", python.pid, "-o", tmp_path / "runs", user=65534, group=65534, cwd="/")
    assert result.returncode == 1
    assert "belongs to the user 'root'" in result.stderr
    assert "sudo fullbore explain --pid" in result.stderr


def test_the_time_and_what_it_is_for_are_checked() -> None:
    assert "--for 'soon' is no time" in explain("--pid", 1, "--for", "soon").stderr
    assert "--for says how long to look at a process" in explain("--for", "3s").stderr
    assert "--pid is for a process that runs" in explain("--pid", 1, "last").stderr


def test_a_process_that_does_not_train_is_left_alone_and_said_to_be_none(
    python: subprocess.Popen, tmp_path: Path
) -> None:
    result = explain("--pid", python.pid, "--for", "1s", "-o", tmp_path)
    assert result.returncode == 0, result.stderr
    assert "No training seen" in result.stdout
    assert "none within a forward or backward pass" in " ".join(result.stdout.split())
    assert python.poll() is None


@pytest.mark.long
def test_ctrl_c_ends_the_sampling_and_reports_what_there_is(python: subprocess.Popen, tmp_path: Path) -> None:
    began = time.monotonic()
    process = subprocess.Popen(
        [FULLBORE, "explain", "--pid", str(python.pid), "--for", "10m", "-o", tmp_path],
        env={**os.environ, "PATH": WITH_PY_SPY},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    while not list(tmp_path.glob("*.fbr")):
        assert time.monotonic() - began < 30
        time.sleep(0.05)
    time.sleep(6)  # until the second py-spy has its handler: the first, of two seconds, learns who trains
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 0, output
    assert "recorded to" in output and "No training seen" in output
    assert python.poll() is None


def test_py_spy_ends_with_us_however_we_end(python: subprocess.Popen, tmp_path: Path) -> None:
    living = tmp_path / "living"
    os.mkfifo(living)
    stand_in = tmp_path / "py-spy"
    stand_in.write_text(f"#!/bin/sh\nexec > {living}\necho began\nexec sleep 600\n")
    stand_in.chmod(0o755)
    process = subprocess.Popen(
        [FULLBORE, "explain", "--pid", str(python.pid), "-o", tmp_path / "runs"],
        env={**os.environ, "PATH": os.pathsep.join([str(tmp_path), "/usr/bin", "/bin"])},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    with living.open() as lines:
        assert lines.readline() == "began\n"
        process.kill()
        process.wait()
        ended, _, _ = select.select([lines], [], [], 60)
        assert ended and lines.readline() == "", "py-spy still has its end open"
