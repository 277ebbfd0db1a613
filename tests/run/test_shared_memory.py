"""A run whose loader's workers find no room in /dev/shm, as in a container of Docker that nobody gave more."""

from __future__ import annotations

import json
import os
import subprocess

import pytest

TRAIN = """
import sys
import torch
from torch.utils.data import DataLoader, Dataset

large_from, fails_at = int(sys.argv[1]), int(sys.argv[2])

class Volumes(Dataset):
    def __len__(self):
        return 4000

    def __getitem__(self, index):
        if index == fails_at:
            raise ValueError("a file that is damaged")
        return torch.zeros(1, 8 if index < large_from else 4_000_000)

model = torch.nn.Linear(8, 2)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for x in DataLoader(Volumes(), batch_size=4, num_workers=2):
    optimizer.zero_grad()
    model(x[:, :, :8]).sum().backward()
    optimizer.step()
"""
NEVER = 10**6


def in_little_shared_memory(fullbore, python: str, *arguments: int) -> tuple[str, dict]:
    """The report of the run in a mount namespace whose /dev/shm holds 40 MB, and what was said."""
    script, report = fullbore.script("train.py", TRAIN), fullbore.directory / "report.json"
    inside = 'mount -t tmpfs -o size=40m tmpfs /dev/shm || exit 77; exec "$@"'
    command = [python, script, *map(str, arguments)]
    run = fullbore.arguments(command, ["-o", fullbore.directory / "runs", "--json", report])
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", inside, "sh", *run],
        env=fullbore.environment(),
        capture_output=True,
        stdin=subprocess.DEVNULL,
        cwd=fullbore.directory,
        timeout=300,
    )
    if not report.exists():
        pytest.skip("no right to mount another /dev/shm")
    return os.fsdecode(done.stderr), json.loads(report.read_text())


@pytest.mark.long
def test_what_ended_the_run_comes_first(fullbore, torch_python):
    _, report = in_little_shared_memory(fullbore, torch_python, 2000, NEVER)
    assert report["exit_status"] == 1
    first = report["findings"][0]
    assert (first["id"], first["cause"]) == ("shared-memory", "full")
    assert "2 loader workers" in first["title"] and "holds 42 MB only" in first["title"]


def test_before_the_first_step_too(fullbore, torch_python):
    _, report = in_little_shared_memory(fullbore, torch_python, 0, NEVER)
    assert report["exit_status"] == 1
    assert report["findings"][0]["id"] == "shared-memory"


@pytest.mark.long
def test_another_failure_beside_a_small_one_is_not_its_doing(fullbore, torch_python):
    _, report = in_little_shared_memory(fullbore, torch_python, NEVER, 2000)
    assert report["exit_status"] == 1
    assert "shared-memory" not in [finding["id"] for finding in report["findings"]]
