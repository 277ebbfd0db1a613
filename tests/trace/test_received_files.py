"""Runs and traces received from somebody else, with files beside them that SQLite would trust.

A hot journal `x-journal` is rolled back into `x`, and the file it names as its super-journal is deleted; `x-wal` and
`x-shm` are opened for writing. After reading a received file, everything must be as it was.
"""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import sqlite3
import struct
from collections.abc import Callable

import pytest

GOLDEN = pathlib.Path(__file__).resolve().parents[1] / "golden" / "resnet-no-workers.fbr"
PAGE = 4096
JOURNAL_MAGIC = bytes.fromhex("d9d505f920a163d7")
SUPER_JOURNAL_PAGE = 0x4000_0000 // PAGE + 1


def hot_journal(database: pathlib.Path, victim: pathlib.Path) -> None:
    """A journal without pages: SQLite truncates the database to its old size and deletes the victim."""
    pages = -(-database.stat().st_size // PAGE)
    header = JOURNAL_MAGIC + struct.pack(">5I", 0, 7, pages, 512, PAGE)
    name = os.fsencode(victim)
    end = struct.pack(">I", SUPER_JOURNAL_PAGE) + name + struct.pack(">2I", len(name), sum(name)) + JOURNAL_MAGIC
    database.with_name(database.name + "-journal").write_bytes(header.ljust(512, b"\0") + end)


class Received:
    """A directory with a received file, its hostile journal, and a file that belongs to the reader."""

    def __init__(self, directory: pathlib.Path) -> None:
        self.victim = directory / "thesis.tex"
        self.victim.write_text("years of work")
        self.directory = directory / "received"
        self.directory.mkdir()

    def add(self, name: str, content: bytes) -> pathlib.Path:
        path = self.directory / name
        path.write_bytes(content)
        hot_journal(path, self.victim)
        return path

    def files(self) -> dict[str, bytes]:
        everywhere = self.directory.parent.rglob("*")
        return {str(p): p.read_bytes() for p in everywhere if p.is_file() or p.is_symlink()}


@pytest.fixture
def received(tmp_path: pathlib.Path) -> Received:
    return Received(tmp_path)


def run_file() -> bytes:
    return GOLDEN.read_bytes()


def trace_text() -> bytes:
    begins = range(0, 4000, 1000)
    kernel = {"ph": "X", "cat": "kernel", "name": "volta_sgemm", "dur": 400, "pid": 0, "tid": 7}
    events = [{**kernel, "ts": ts, "args": {"correlation": ts + 1, "device": 0, "stream": 7}} for ts in begins]
    return json.dumps({"schemaVersion": 1, "traceEvents": events}).encode().ljust(PAGE)


def nsys_export(directory: pathlib.Path) -> bytes:
    path = directory / "made.sqlite"
    database = sqlite3.connect(path)
    database.executescript(
        "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER,"
        " correlationId INTEGER);"
        "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (100, 400, 0, 7, 1), (1100, 1400, 0, 7, 2);"
    )
    database.close()
    content = path.read_bytes()
    path.unlink()
    return content


def explain(fullbore, path: pathlib.Path) -> int:
    return fullbore.call("explain", path).code


def explain_section(fullbore, path: pathlib.Path) -> int:
    return fullbore.call("explain", "--section", "kernels", path).code


def explain_directory(fullbore, path: pathlib.Path) -> int:
    return fullbore.call("explain", path.parent).code


def compare(fullbore, path: pathlib.Path) -> int:
    return fullbore.call("compare", path, path).code


def export(fullbore, path: pathlib.Path) -> int:
    return fullbore.call("export", path, "--to", "perfetto", "-o", "-").code


def runs(fullbore, path: pathlib.Path) -> int:
    return fullbore.call("runs", "-o", path.parent).code


def explain_newest(fullbore, path: pathlib.Path) -> int:
    return fullbore.call("explain", "last", "-o", path.parent).code


@pytest.mark.parametrize("read", [explain, explain_newest, compare, runs])
def test_a_received_run_is_read_and_nothing_of_the_reader_changes(fullbore, received: Received, read: Callable):
    path = received.add("x.fbr", run_file())
    before = received.files()
    assert read(fullbore, path) == 0
    assert received.files() == before


@pytest.mark.parametrize("read", [explain, explain_section, explain_directory, compare, export])
@pytest.mark.parametrize("name", ["trace.json", "export.sqlite"])
def test_a_received_trace_is_read_and_nothing_of_the_reader_changes(
    fullbore, received: Received, tmp_path: pathlib.Path, name: str, read: Callable
):
    content = trace_text() if name.endswith(".json") else nsys_export(tmp_path)
    path = received.add(name, content)
    before = received.files()
    assert read(fullbore, path) == 0
    assert received.files() == before


def test_a_run_named_like_a_trace_and_a_trace_named_like_a_run_change_nothing(fullbore, received: Received):
    run = received.add("run.sqlite", run_file())
    trace = received.add("trace.fbr", trace_text())
    before = received.files()
    assert explain(fullbore, run) == 0
    assert explain(fullbore, trace) == 1
    assert export(fullbore, run) == 2
    assert received.files() == before


def log_of_a_run(directory: pathlib.Path) -> tuple[bytes, bytes]:
    """The run as a killed recorder would leave it: the id is only in the log."""
    path = directory / "made.fbr"
    shutil.copy(GOLDEN, path)
    database = sqlite3.connect(path)
    database.execute("PRAGMA journal_mode=WAL")
    database.execute("UPDATE meta SET value = 'from-the-log' WHERE key = 'id'")
    database.commit()
    content = path.read_bytes(), path.with_name("made.fbr-wal").read_bytes()
    database.close()
    path.unlink()
    return content


def test_a_log_beside_a_received_run_is_read_and_left_as_it_is(fullbore, received: Received, tmp_path: pathlib.Path):
    main, log = log_of_a_run(tmp_path)
    path = received.add("x.fbr", main)
    path.with_name("x.fbr-wal").write_bytes(log)
    # A hard link to the reader's own file: an archive can contain one.
    os.link(received.victim, path.with_name("x.fbr-shm"))
    before = received.files()
    said = fullbore.call("explain", path, "--json", "-")
    assert said.code == 0, said.stderr
    assert json.loads(said.stdout)["run_id"] == "from-the-log"
    assert received.files() == before


@pytest.mark.parametrize("what", ["link", "fifo", "directory"])
def test_a_log_that_is_not_a_regular_file_is_refused_without_blocking(fullbore, received: Received, what: str):
    path = received.add("x.fbr", run_file())
    log = path.with_name("x.fbr-wal")
    if what == "link":
        log.symlink_to(received.victim)
    elif what == "fifo":
        os.mkfifo(log)
    else:
        log.mkdir()
    before = received.files()
    said = fullbore.call("explain", path)
    assert said.code == 1
    assert "x.fbr-wal" in said.stderr
    assert received.files() == before


def test_an_empty_run_beside_a_log_leaves_the_log_where_it_is(fullbore, received: Received):
    path = received.add("x.fbr", b"")
    path.with_name("x.fbr-wal").write_bytes(b"the reader's")
    before = received.files()
    assert explain(fullbore, path) == 1
    assert received.files() == before


def test_a_stage_is_not_added_to_a_run_whose_journal_deletes_other_files(fullbore, received: Received):
    received.add("x.fbr", run_file())
    fullbore.call("run", "-o", received.directory, "--run", "x", "--no-hook", "--", "true")
    assert received.victim.exists()


@pytest.mark.parametrize("what", ["second name", "link", "fifo"])
@pytest.mark.parametrize("suffix", ["-wal", "-shm", "-journal"])
def test_a_stage_is_not_added_to_a_run_beside_what_no_recorder_left(fullbore, received: Received, suffix, what):
    path = received.add("x.fbr", run_file())
    path.with_name("x.fbr-journal").unlink()
    beside = path.with_name(f"x.fbr{suffix}")
    if what == "second name":
        os.link(received.victim, beside)
    elif what == "link":
        beside.symlink_to(received.victim)
    else:
        os.mkfifo(beside)
    before = received.files()
    said = fullbore.call("run", "-o", received.directory, "--run", "x", "--no-hook", "--", "echo", "ran")
    assert (said.code, said.stdout) == (0, b"ran\n"), said.stderr
    assert f"x.fbr{suffix}' was not left by a recorder" in said.stderr
    assert received.files() == before
