"""Runs that give cause for alerts."""

from __future__ import annotations

import json
import pathlib
from typing import Any


def history(fullbore, run_file: pathlib.Path) -> list[dict[str, Any]]:
    """What `fullbore alerts` knows of a run."""
    listed = fullbore.call("alerts", run_file, "--json", "-")
    assert listed.code == 0, listed.stderr
    return json.loads(listed.stdout)


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
        time.sleep(0.02 if (here / "slow").exists() else 0.0005)
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
    for _ in range(10):
        optimizer.zero_grad()
        model(images).sum().backward()
    optimizer.step()
"""
