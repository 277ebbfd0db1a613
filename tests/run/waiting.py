"""Waits for what a run does, rather than for a time by which it has probably done it."""

from __future__ import annotations

import contextlib
import pathlib
import sqlite3
import time
from collections.abc import Callable

PATIENCE_S = 60  # a hang, on any machine


def wait_for(what: Callable[[], object], text: str) -> None:
    """Waits until `what` is true; fails with `text` if it never is."""
    deadline = time.monotonic() + PATIENCE_S
    while not what():
        assert time.monotonic() < deadline, f"waited in vain for: {text}"
        time.sleep(0.02)


def recorded_until_ns(runs: pathlib.Path) -> int:
    """Up to which moment (time.monotonic_ns) the run in a directory is on disk, read like any reader; 0: not yet."""
    try:
        (run_file,) = runs.glob("*.fbr")
        with contextlib.closing(sqlite3.connect(f"file:{run_file}?mode=ro", uri=True)) as database:
            return database.execute("SELECT max(end_ns) FROM stage").fetchone()[0] or 0
    except (ValueError, sqlite3.OperationalError):
        return 0


def wait_until_recorded(runs: pathlib.Path, for_s: float) -> None:
    """Waits until the recorder has worked for that long from now on, which is many rounds."""
    until_ns = time.monotonic_ns() + int(for_s * 1e9)
    wait_for(lambda: recorded_until_ns(runs) >= until_ns, f"{for_s} s more in {runs}")
