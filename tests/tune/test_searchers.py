"""Other people's searchers on top of `fullbore measure`: the programs of examples/search, as they stand there."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest
from tune_scripts import WAITS

from tests.conftest import ROOT


@pytest.mark.long
@pytest.mark.parametrize(
    ("searcher", "needs", "flags"),
    [
        ("with_optuna.py", "optuna", ["--trials", "4", "--most-workers", "2"]),
        ("with_ray.py", "ray.tune", ["--workers", "0", "2"]),
    ],
)
def test_a_searcher_finds_that_workers_help_a_loader_that_sleeps(fullbore, searcher, needs, flags):
    pytest.importorskip(needs)
    program = fullbore.script("waits.py", WAITS)
    command = [sys.executable, ROOT / "examples" / "search" / searcher, *flags, "--", sys.executable, program]
    paths = {"PATH": f"{os.path.dirname(fullbore.binary)}:{os.environ['PATH']}"}
    done = subprocess.run(
        command, env={**os.environ, **paths}, cwd=fullbore.directory, capture_output=True, text=True, timeout=400
    )
    assert done.returncode == 0, done.stderr
    best = re.search(r"best: \{'num_workers': (\d)\}, [\d.]+ samples/s; fullbore explain (\S+)", done.stdout)
    assert best, done.stdout
    assert best[1] == "2"
    assert b"input-bound" in fullbore.call("explain", best[2], "--json", "-").stdout, "its trials are runs like others"
