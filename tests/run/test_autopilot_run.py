"""What the autopilot did is said on the terminal at once, and stands in the run and its report."""

import sys

import pytest

PROGRAM = """
import time
import torch
from torch.utils.data import DataLoader, Dataset

class Rows(Dataset):
    def __len__(self):
        return 200
    def __getitem__(self, index):
        time.sleep(0.005)
        return torch.rand(4)

model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(Rows(), 8, shuffle=True)
for epoch in range(4):
    for x in loader:
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()
"""
SAID = "the loader keeps its 0 workers: making a sample draws random numbers, which depend on the number of workers"


@pytest.mark.long
def test_why_nothing_is_changed_is_said_at_once_and_in_the_report(fullbore):
    done = fullbore.run(sys.executable, fullbore.script("train.py", PROGRAM), flags=["--autopilot"])
    assert done.code == 0
    assert f"fullbore: --autopilot: {SAID}" in done.stderr
    assert any(SAID in message for message in done.report["messages"])


def test_it_needs_the_hook(fullbore):
    done = fullbore.call("run", "--autopilot", "--no-hook", "--", "true")
    assert done.code == 2
    assert "--autopilot works through the hook, which --no-hook leaves out" in done.stderr
