"""Runs that give cause for alerts."""

from __future__ import annotations

import contextlib
import json
import pathlib
import sqlite3
import time
from typing import Any

PATIENCE_S = 90


def rules(fullbore, text: str, url: str = "") -> pathlib.Path:
    return fullbore.script("alerts.toml", text.replace("URL", url))


def running(runs: pathlib.Path) -> pathlib.Path:
    """The run file, once there is one."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        if found := list(runs.glob("*.fbr")):
            return found[0]
        time.sleep(0.05)
    raise AssertionError("no run file")


def history(fullbore, run_file: pathlib.Path) -> list[dict[str, Any]]:
    """What `fullbore alerts` knows of a run."""
    listed = fullbore.call("alerts", run_file, "--json", "-")
    assert listed.code == 0, listed.stderr
    return json.loads(listed.stdout)


def owed(run_file: pathlib.Path) -> list[str]:
    """What is still to be said of the first alert: "firing" and "resolved"; ["no alert"] before there is one."""
    with contextlib.closing(sqlite3.connect(f"file:{run_file}?mode=ro", uri=True)) as database:
        if not database.execute("SELECT 1 FROM sqlite_master WHERE name = 'alert'").fetchone():
            return ["no alert"]
        first = database.execute("SELECT undelivered FROM alert ORDER BY id").fetchone()
    return [state.split()[0] for state in json.loads(first[0])] if first else ["no alert"]


def wait_until_owed(run_file: pathlib.Path, *states: str) -> None:
    """Until the history holds that so much is still to be said: of an alert, and that was said to nobody."""
    until = time.monotonic() + PATIENCE_S
    while (now := owed(run_file)) != list(states):
        assert time.monotonic() < until, f"{now} instead of {states}"
        time.sleep(0.05)


def those_that_fired(tested: str | bytes) -> dict[str, int]:
    """How often each rule would have fired, of those that would: what `fullbore alerts test --json` says."""
    return {rule["alert"]: rule["fired"] for rule in json.loads(tested)["rules"] if rule["fired"]}


# A training whose loader can be slowed down, and that can stop, by files beside it.
TRAINING = """
import os, pathlib, sys, time, torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.set_num_threads(1)
here = pathlib.Path(__file__).parent
seconds = float(sys.argv[1])

class Photos(Dataset):
    def __len__(self):
        return 1_000_000

    def __getitem__(self, index):
        time.sleep(0.1 if (here / "slow").exists() else 0.0005)
        return torch.randn(64), index % 4

model = nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 4))
optimizer = torch.optim.SGD(model.parameters(), 0.1)
end = time.monotonic() + seconds
kept = []
for step, (images, _) in enumerate(DataLoader(Photos(), batch_size=4)):
    if time.monotonic() > end or (here / "finish").exists():
        break
    while (here / "hang").exists():
        time.sleep(0.05)
    if (here / "crash").exists():
        sys.exit(3)
    for _ in range(40):
        optimizer.zero_grad()
        model(images).sum().backward()
    optimizer.step()
"""
