"""A dataset that is a list of Python objects, and a loop that collects garbage every few steps, as people do who once
ran out of memory.

    collects.py EPOCHS
"""

from __future__ import annotations

import gc
import random
import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

SAMPLES, WORDS = 20_000, 40
COLLECT_EVERY = 10  # steps


class Sentences(Dataset):
    def __init__(self) -> None:
        chance = random.Random(0)
        self.samples = [
            {"words": [(chance.randrange(1000), chance.random()) for _ in range(WORDS)], "label": chance.randrange(10)}
            for _ in range(SAMPLES)
        ]

    def __len__(self) -> int:
        return len(self.samples) // 10  # an epoch sees a part

    def __getitem__(self, at: int) -> tuple[torch.Tensor, int]:
        sample = self.samples[at]
        return torch.tensor([word for word, _ in sample["words"]]), sample["label"]


def main() -> None:
    model = nn.Sequential(nn.EmbeddingBag(1000, 128), nn.Linear(128, 512), nn.ReLU(), nn.Linear(512, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(Sentences(), batch_size=32, shuffle=True)
    step = 0
    for _ in range(int(sys.argv[1])):
        for words, labels in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(words), labels).backward()
            optimizer.step()
            step += 1
            if step % COLLECT_EVERY == 0:
                gc.collect()


if __name__ == "__main__":
    main()
