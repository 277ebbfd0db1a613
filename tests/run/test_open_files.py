"""A run that keeps what its loader's workers hand over, until it may open no more files."""

from __future__ import annotations

import pytest

TRAIN = """
import resource
import sys
import torch
from torch.utils.data import DataLoader, Dataset

keeps, opens = sys.argv[1] == "keeps", sys.argv[1] == "opens"

class Rows(Dataset):
    def __len__(self):
        return 2000

    def __getitem__(self, index):
        return torch.zeros(8)

model = torch.nn.Linear(8, 2)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
kept = []
loader = iter(DataLoader(Rows(), batch_size=4, num_workers=1))
for at, x in enumerate(loader):
    optimizer.zero_grad()
    model(x).sum().backward()
    optimizer.step()
    if at == 3:
        resource.setrlimit(resource.RLIMIT_NOFILE, (128, 128))
    if keeps:
        kept.append(x)
    while opens and at > 10:
        kept.append(open("/dev/null"))
"""


def report_of(fullbore, python: str, how: str) -> dict:
    return fullbore.run(python, fullbore.script("train.py", TRAIN), how).report


@pytest.mark.long
def test_batches_that_are_kept_are_what_ended_it(fullbore, torch_python):
    report = report_of(fullbore, torch_python, "keeps")
    assert report["exit_status"] == 1
    first = report["findings"][0]
    assert (first["id"], first["cause"]) == ("shared-memory", "open-files")
    assert "as many files open as it may, 128," in first["title"]


@pytest.mark.long
@pytest.mark.parametrize(("how", "status"), [("opens", 1), ("neither", 0)])
def test_files_of_the_scripts_own_are_not_the_workers_doing(fullbore, torch_python, how, status):
    report = report_of(fullbore, torch_python, how)
    assert report["exit_status"] == status
    assert "shared-memory" not in [finding["id"] for finding in report["findings"]]
