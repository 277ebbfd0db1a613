"""`fullbore tune --objective tokens`: what packs samples is judged by what the model learns from."""

from __future__ import annotations

import pytest

BRIEFLY = ("--precision", "20%", "--most", "4s", "--budget", "200s")
# Samples of 8 to 32 tokens in rows of 64, or several of them in a row of 64 until one more would not fit.
PACKS = """
import random, sys, torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
torch.set_num_threads(1)
random.seed(1)
WIDTH, PACKS = 64, sys.argv[1] == "1"
lengths = [random.randint(8, 32) for _ in range(20_000)]
rows, free = [], 0
for length in lengths:
    sample = [random.randint(1, 99) for _ in range(length)]
    if PACKS and rows and len(rows[-1]) + length <= WIDTH:
        rows[-1] += sample
    else:
        rows.append(sample)
ids = torch.tensor([row + [0] * (WIDTH - len(row)) for row in rows])
words = nn.Embedding(100, 64, padding_idx=0)
model = nn.Sequential(words, nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 100))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(1000):
    for (batch,) in DataLoader(TensorDataset(ids), batch_size=16):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(batch).flatten(0, 1), batch.flatten(), ignore_index=0).backward()
        optimizer.step()
"""
NO_TOKENS = """
import torch
model = torch.nn.Linear(8, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for batch in torch.utils.data.DataLoader(torch.ones(100_000, 8), batch_size=4):
    optimizer.zero_grad()
    model(batch).sum().backward()
    optimizer.step()
"""


@pytest.mark.long
def test_packing_gains_tokens_though_not_samples(fullbore, tune, torch_python):
    command = (torch_python, fullbore.script("packs.py", PACKS), "{pack}")
    said = tune("--objective", "tokens", "--set", "pack=0,1", *BRIEFLY, "--", *command)
    assert {trial["unit"] for trial in said["trials"]} == {"useful tokens/s"}, said["terminal"]
    assert said["recommended"]["settings"] == {"pack": "1"} or said["recommended"]["settings"] == {"pack": 1}
    assert said["recommended"]["gain"]["expected"] > 1.5, "rows are filled to 80 % rather than to 31 %"
    assert said["recommended"]["samples_per_s"] is None
    assert "useful tokens/s" in said["terminal"]


@pytest.mark.long
def test_a_program_without_tokens_is_refused_with_the_reason(fullbore, tune, torch_python):
    command = (torch_python, fullbore.script("no_tokens.py", NO_TOKENS))
    said = tune("--objective", "tokens", *BRIEFLY, "--", *command, code=1)
    assert said["recommended"] is None
    assert "no tokens were seen" in said["terminal"] and "--objective throughput" in said["terminal"]
