"""Each (short) epoch begins with a pause that grows with the dataset.

Source: "RandomSampler is very slow with huge dataset", https://github.com/pytorch/pytorch/issues/50689
  (from https://github.com/huggingface/transformers/issues/8818)
Cause: shuffle=True permutes all indices and makes a Python list of them, in the training process.
Fix: draw the indices that are needed: RandomSampler(replacement=True, num_samples=...).
"""

import numpy as np
import torch
from clock import Clock, options
from torch.utils.data import DataLoader, Dataset, RandomSampler

opts = options(14.0)
torch.manual_seed(0)
STEPS, BATCH = 60, 32


class Lines(Dataset):
    def __len__(self):
        return 20_000_000

    def __getitem__(self, index):
        return np.random.default_rng(index).standard_normal(64, dtype=np.float32), index % 10


lines = Lines()
sampler = RandomSampler(lines, replacement=True, num_samples=STEPS * BATCH) if opts.fixed else RandomSampler(lines)
loader = DataLoader(lines, batch_size=BATCH, sampler=sampler)
model = torch.nn.Sequential(
    torch.nn.Linear(64, 1024),
    torch.nn.ReLU(),
    torch.nn.Linear(1024, 1024),
    torch.nn.ReLU(),
    torch.nn.Linear(1024, 1024),
    torch.nn.ReLU(),
    torch.nn.Linear(1024, 10),
)
optimizer = torch.optim.Adam(model.parameters())
clock = Clock(opts.seconds)
over = False
while not over:
    for step, (x, labels) in enumerate(loader):
        if step == STEPS:  # steps_per_epoch
            break
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x), labels)
        loss.backward()
        optimizer.step()
        over = clock.done(len(labels), loss)
        if over:
            break
clock.rate()
