"""Whatever fails on our side, the command runs as without us, and the terminal says what was lost."""

from __future__ import annotations

import json
import os
import pathlib
import sqlite3
import subprocess
import sys
from collections.abc import Mapping

import pytest

AT_ONCE = 20


@pytest.fixture
def temporary(fullbore) -> pathlib.Path:
    place = fullbore.directory / "temporary"
    place.mkdir()
    return place


def start_at_once(fullbore, flags: list[str]) -> list[subprocess.Popen]:
    """Commands held at a pipe until all of them are ready."""
    reader, writer = os.pipe()
    command = fullbore.arguments(["sh", "-c", "echo ran >>ran"], flags)
    processes = [
        subprocess.Popen(
            ["sh", "-c", 'read -r _ <&3; exec 3<&-; exec "$@"', "sh", *command],
            cwd=fullbore.directory,
            env=fullbore.environment(),
            stderr=subprocess.PIPE,
            preexec_fn=lambda: os.dup2(reader, 3),
            pass_fds=[3],
        )
        for _ in range(AT_ONCE)
    ]
    os.close(reader)
    os.write(writer, b"\n" * AT_ONCE)
    os.close(writer)
    return processes


def test_runs_that_start_at_the_same_time_have_separate_files(fullbore):
    processes = start_at_once(fullbore, ["-q", "-o", "same", "--name", "twin"])
    said = [process.communicate()[1] for process in processes]
    assert [process.returncode for process in processes] == [0] * AT_ONCE, said
    assert (fullbore.directory / "ran").read_text() == "ran\n" * AT_ONCE
    assert len(list((fullbore.directory / "same").glob("*.fbr"))) == AT_ONCE
    runs = json.loads(fullbore.call("runs", "-o", "same", "--json", "-").stdout)
    assert len({run["id"] for run in runs}) == AT_ONCE
    assert [len(run["stages"]) for run in runs] == [1] * AT_ONCE


def test_stages_that_start_at_the_same_time_share_one_file(fullbore):
    processes = start_at_once(fullbore, ["-q", "-o", "same", "--run", "whole", "--stage", "part"])
    said = [process.communicate()[1] for process in processes]
    assert said == [b""] * AT_ONCE, "a lock was reported"
    assert (fullbore.directory / "ran").read_text() == "ran\n" * AT_ONCE
    (run,) = json.loads(fullbore.call("runs", "-o", "same", "--json", "-").stdout)
    assert len({stage["name"] for stage in run["stages"]}) == AT_ONCE


def run_it(fullbore, *flags: str | os.PathLike, env: Mapping[str, str]) -> subprocess.CompletedProcess:
    command = fullbore.arguments(["sh", "-c", "echo ran; exit 7"], [*flags, "--json", "report.json"])
    return subprocess.run(
        command, cwd=fullbore.directory, env=fullbore.environment(env), capture_output=True, stdin=subprocess.DEVNULL
    )


def check_kept_elsewhere(done: subprocess.CompletedProcess, fullbore, temporary: pathlib.Path) -> None:
    assert (done.returncode, done.stdout) == (7, b"ran\n"), done.stderr
    (run_file,) = temporary.glob("fullbore.*/*.fbr")
    assert str(run_file.parent) in done.stderr.decode() and "-o DIR" in done.stderr.decode()
    assert run_file.parent.stat().st_mode & 0o777 == 0o700
    assert fullbore.explain(run_file)["exit_status"] == 7
    assert json.loads((fullbore.directory / "report.json").read_text())["exit_status"] == 7
    assert b"No training seen" in done.stderr, "the report comes"


@pytest.mark.parametrize("place", ["/proc/runs", "a-file", "a-file/below", "/sys/kernel"])
def test_a_place_that_cannot_be_written_costs_the_place(fullbore, temporary, place):
    (fullbore.directory / "a-file").write_text("")
    done = run_it(fullbore, "-o", place, env={"TMPDIR": str(temporary)})
    assert place in done.stderr.decode()
    check_kept_elsewhere(done, fullbore, temporary)


def test_a_file_that_is_not_a_run_is_kept_and_costs_the_place(fullbore, temporary):
    (fullbore.directory / "all").mkdir()
    strange = fullbore.directory / "all" / "whole.fbr"
    strange.write_bytes(b"not a database" * 1000)
    done = run_it(fullbore, "-o", "all", "--run", "whole", env={"TMPDIR": str(temporary)})
    check_kept_elsewhere(done, fullbore, temporary)
    assert strange.read_bytes() == b"not a database" * 1000


@pytest.mark.long
def test_a_lock_that_is_never_released_costs_the_place(fullbore, temporary):
    (fullbore.directory / "all").mkdir()
    with sqlite3.connect(fullbore.directory / "all" / "whole.fbr") as database:
        database.execute("CREATE TABLE somebody (holds)")
        database.commit()
        database.execute("BEGIN EXCLUSIVE")
        done = run_it(fullbore, "-o", "all", "--run", "whole", env={"TMPDIR": str(temporary)})
        database.execute("ROLLBACK")
    assert b"database is locked" in done.stderr
    check_kept_elsewhere(done, fullbore, temporary)


def test_a_full_disk_costs_the_place(fullbore, temporary, small_disk):
    filler = small_disk / "filler"
    with open(filler, "ab", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            pass
    done = run_it(fullbore, "-o", small_disk, env={"TMPDIR": str(temporary)})
    check_kept_elsewhere(done, fullbore, temporary)
    assert list(small_disk.iterdir()) == [filler], "an unfinished file is left"


def test_where_nothing_can_be_written_the_command_runs_unrecorded(fullbore):
    (fullbore.directory / "a-file").write_text("")
    command = fullbore.arguments(["sh", "-c", "env | grep -c ^FULLBORE_; exit 7"], ["-o", "a-file"])
    environment = fullbore.environment({"TMPDIR": "a-file"})
    environment.pop("FULLBORE_WINDOWS", None)  # the tests' own
    done = subprocess.run(command, cwd=fullbore.directory, env=environment, capture_output=True)
    assert (done.returncode, done.stdout) == (7, b"0\n"), done.stderr
    assert b"nothing is recorded" in done.stderr and b"-o DIR" in done.stderr


@pytest.mark.parametrize("blocks", [0, 1, 64])
def test_a_limit_on_the_size_of_files_costs_the_recording_not_the_command(fullbore, temporary, blocks):
    command = subprocess.list2cmdline(fullbore.arguments(["sh", "-c", "echo $(ulimit -f); exit 7"], ["-o", "runs"]))
    done = subprocess.run(
        ["sh", "-c", f"ulimit -f {blocks}; {command}; echo $?"],
        cwd=fullbore.directory,
        env=fullbore.environment({"TMPDIR": str(temporary)}),
        capture_output=True,
    )
    assert done.stdout == f"{blocks}\n7\n".encode(), done.stderr


@pytest.mark.parametrize("files", range(5, 30))
def test_a_limit_on_open_files_costs_the_recording_not_the_command(fullbore, temporary, files):
    """Some limits leave no descriptor for a run file, some none for the pipe to a child: then we become the command."""
    command = subprocess.list2cmdline(fullbore.arguments(["sh", "-c", "echo ran; exit 7"], ["-o", "runs"]))
    done = subprocess.run(
        ["sh", "-c", f"ulimit -n {files}; {command}; echo $?"],
        cwd=fullbore.directory,
        env=fullbore.environment({"TMPDIR": str(temporary)}),
        capture_output=True,
    )
    assert done.stdout == b"ran\n7\n", done.stderr


def test_a_working_directory_that_was_deleted_is_no_reason_not_to_run(fullbore, temporary):
    command = subprocess.list2cmdline(fullbore.arguments(["sh", "-c", "echo ran; exit 7"]))
    done = subprocess.run(
        ["sh", "-c", f"mkdir gone && cd gone && rmdir ../gone && {command}"],
        cwd=fullbore.directory,
        env=fullbore.environment({"TMPDIR": str(temporary)}),
        capture_output=True,
    )
    assert (done.returncode, done.stdout) == (7, b"ran\n"), done.stderr
    (run_file,) = temporary.glob("fullbore.*/*.fbr")
    assert run_file.with_suffix(".html").exists()
    assert b"No training seen" in done.stderr


def test_with_a_directory_of_its_own_a_run_needs_no_working_directory(fullbore):
    command = fullbore.arguments(["true"], ["-o", fullbore.directory / "runs"])
    line = f"mkdir gone && cd gone && rmdir ../gone && {subprocess.list2cmdline(command)}"
    done = subprocess.run(["sh", "-c", line], cwd=fullbore.directory, env=fullbore.environment(), capture_output=True)
    assert done.returncode == 0, done.stderr
    assert b"No training seen" in done.stderr
    assert len(list((fullbore.directory / "runs").glob("*.html"))) == 1


@pytest.mark.parametrize("back", ["", "; mkdir -p .fullbore/runs"])
def test_a_run_that_is_deleted_with_its_directory_is_kept(fullbore, temporary, back):
    place = fullbore.directory / "place"
    place.mkdir()
    report = fullbore.directory / "report.json"
    delete = f"sleep 0.5; rm -rf .fullbore; rmdir {place}{back}; exit 7"
    if back:
        delete = f"sleep 0.5; rm -rf .fullbore{back}; exit 7"
    done = subprocess.run(
        fullbore.arguments(["sh", "-c", delete], ["--json", report]),
        cwd=place,
        env=fullbore.environment({"TMPDIR": str(temporary)}),
        capture_output=True,
    )
    assert done.returncode == 7, done.stderr
    (run_file,) = temporary.glob("fullbore.*/*.fbr")
    assert "was deleted during the run" in done.stderr.decode() and str(run_file) in done.stderr.decode()
    assert b"No training seen" in done.stderr
    assert json.loads(report.read_text())["exit_status"] == 7
    assert fullbore.explain(run_file)["exit_status"] == 7


def test_a_page_that_cannot_be_written_costs_no_other_report(fullbore):
    done = fullbore.run("sh", "-c", "exit 7", flags=["--html", "/proc/no.html"])
    assert done.code == 7
    assert "No training seen" in done.stderr and "/proc/no.html" in done.stderr
    assert done.report["exit_status"] == 7


PYENV = pathlib.Path(os.environ.get("PYENV_ROOT", pathlib.Path.home() / ".pyenv")) / "versions"
PYTHONS = [sys.executable, *map(str, sorted(PYENV.glob("3.9.*/bin/python3")))]


@pytest.mark.parametrize("python", PYTHONS)
def test_doctor_imports_nothing_from_the_working_directory(fullbore, python):
    tools = fullbore.directory / "tools"
    tools.mkdir()
    wrapper = tools / "python3"
    wrapper.write_text(f'#!/bin/sh\necho started >>started\nexec {python} "$@"\n')
    wrapper.chmod(0o755)
    for name in ("torch", "numpy", "json", "fullbore"):
        fullbore.script(f"{name}.py", f"open('imported', 'a').write({name!r})\n")
    done = fullbore.call("doctor", env={"PATH": f"{tools}:{os.environ['PATH']}"})
    assert done.code == 0
    assert (fullbore.directory / "started").read_text() == "started\n" * 3
    assert not (fullbore.directory / "imported").exists()
