"""What a larger batch brings stands beside the answer of `fullbore tune`, and never in it."""

from __future__ import annotations

import pytest

# A step costs 20 ms whatever its batch, so that a larger one is nearly as many times as fast.
SCRIPT = """
import time, torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
torch.set_num_threads(1)
data = TensorDataset(torch.randn(20_000, 16), torch.zeros(20_000, dtype=torch.long))
model = nn.Linear(16, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
while True:
    for x, y in DataLoader(data, batch_size=4):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        time.sleep(0.02)
"""
BRIEFLY = ("--precision", "20%", "--most", "2s", "--budget", "3m")


@pytest.mark.long
@pytest.mark.alone  # beside other tests the time that is left after the proof may not do
def test_a_larger_batch_is_offered_beside_the_answer(fullbore, tune, torch_python):
    script = fullbore.script("small_batch.py", SCRIPT)
    said = tune(*BRIEFLY, "--", torch_python, script)
    assert "batch_size" not in said["recommended"]["settings"]
    assert said["larger_batch"]["verdict"] == "faster"
    assert said["larger_batch"]["settings"]["batch_size"] >= 16
    assert said["larger_batch"]["gain"]["low"] > 2
    assert [trial for trial in said["trials"] if trial.get("apart")]
    assert not [trial for trial in said["pareto"] if "batch_size" in trial["settings"]]
    terminal = " ".join(said["terminal"].split())
    assert "A larger batch would change training results" in terminal
    assert "the learning rate" in terminal


@pytest.mark.long
def test_a_batch_is_not_measured_where_only_something_else_was_asked_for(fullbore, tune, torch_python):
    script = fullbore.script("small_batch.py", SCRIPT)
    said = tune("--set", "num_workers=0,1", *BRIEFLY, "--", torch_python, script)
    assert said["larger_batch"] is None
    assert said["larger_batch_grounds"] == []
