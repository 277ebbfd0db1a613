"""Trains a small transformer on batches of given lengths: what `--what-if` and a fitting batch are held against.

    batches.py SEED ROWS STEPS LEAST MOST    prints the highest peak, allocated and reserved, in bytes

Each batch has ROWS rows of one random length from LEAST to MOST tokens. Record it with `fullbore run`, ask
`fullbore explain --what-if` for another batch, and train with that one. On device.c, as memory.py runs program.py.
"""

from __future__ import annotations

import random
import sys

import torch
from program import Model
from torch import nn


def main() -> None:
    seed, rows, steps, least, most = map(int, sys.argv[1:])
    chance = random.Random(seed)
    model = Model(random.Random(seed)).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(steps):
        tokens = torch.zeros(rows, chance.randint(least, most), dtype=torch.int64, device="cuda")
        nn.functional.cross_entropy(model(tokens).view(-1, model.words), tokens.view(-1)).backward()
        optimizer.step()
        optimizer.zero_grad()
    print("peak", torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())


if __name__ == "__main__":
    main()
