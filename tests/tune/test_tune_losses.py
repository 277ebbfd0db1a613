"""What settings of arithmetic do to training results: `fullbore tune` compares the losses of the first steps."""

from __future__ import annotations

import pytest

SCRIPT = """
import sys, time, torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

class Images(Dataset):
    def __len__(self):
        return 100_000

    def __getitem__(self, index):
        picture = torch.Generator().manual_seed(index)
        return torch.rand(3, 8, 8, generator=picture), index % 4

if __name__ == "__main__":
    torch.set_num_threads(1)
    if SEEDED:
        torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 36, 4))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for x, y in DataLoader(Images(), batch_size=8, shuffle=True):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        time.sleep(0.02)
"""
BRIEFLY = ("--precision", "30%", "--most", "3s", "--budget", "2m")


@pytest.mark.long
def test_the_losses_of_the_first_steps_are_compared_with_those_without_a_setting(fullbore, tune, torch_python):
    script = fullbore.script("seeded.py", "SEEDED = True\n" + SCRIPT)
    said = tune("--set", "precision=bf16", "--set", "optimizer=fused", *BRIEFLY, "--", torch_python, script)
    assert all(len(trial["first_losses"]) == 20 for trial in said["trials"])
    for each in said["losses"]:
        assert each["steps"] == 20 and not each["is_noise"]
        assert each["largest_difference"] < 0.05
    bf16 = next(each for each in said["losses"] if "bf16" in each["setting"])
    assert bf16["largest_difference"] > 0, "eight bits of a product"
    assert "losses of the first 20 steps with" in " ".join(said["terminal"].split())


@pytest.mark.long
def test_the_losses_of_a_script_that_draws_other_numbers_each_time_differ(fullbore, tune, torch_python):
    script = fullbore.script("unseeded.py", "SEEDED = False\n" + SCRIPT)
    said = tune("--exhaustive", "--set", "precision=fp32,bf16", *BRIEFLY, "--", torch_python, script)
    (bf16,) = [each for each in said["losses"] if each["setting"] == "precision=bf16"]
    assert bf16["largest_difference"] > 0.01


@pytest.mark.long
def test_a_single_measurement_says_its_first_losses(fullbore, measure, torch_python):
    script = fullbore.script("seeded.py", "SEEDED = True\n" + SCRIPT)
    plain = measure(*BRIEFLY[:4], "--", torch_python, script)
    again = measure(*BRIEFLY[:4], "--set", "channels_last=true", "--", torch_python, script)
    assert len(plain["first_losses"]) == 20
    assert plain["first_losses"] == pytest.approx(again["first_losses"], rel=1e-3)
