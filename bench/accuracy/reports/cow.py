"""Memory of the loader's workers grows through an epoch until the machine is full.

Source: "Dataloader's memory usage keeps increasing during one single epoch",
  https://github.com/pytorch/pytorch/issues/20433 (and #13246)
Cause: the dataset holds millions of small Python objects; reading one writes its reference count, so the worker's copy
  of that page becomes its own.
Fix: keep them in one NumPy array.
"""

import numpy as np
import torch
from clock import Clock, options
from torch.utils.data import DataLoader, Dataset

opts = options(20.0)
torch.manual_seed(0)
torch.set_num_threads(1)


class Records(Dataset):
    def __init__(self, count=3_000_000):
        names = [f"images/train/{i:0120d}.jpg" for i in range(count)]
        self.names = np.array(names, dtype="S160") if opts.fixed else names

    def __len__(self):
        return len(self.names) // 64

    def __getitem__(self, index):
        total = 0
        for name in self.names[index * 64 : index * 64 + 64]:  # the annotations of one image
            total += len(name)
        return torch.full((32,), float(total % 7)), index % 10


loader = DataLoader(Records(), batch_size=8, shuffle=True, num_workers=2)
model = torch.nn.Sequential(
    torch.nn.Linear(32, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 10)
)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
clock = Clock(opts.seconds)
for x, labels in loader:
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(x), labels)
    loss.backward()
    optimizer.step()
    if clock.done(len(labels), loss):
        break
clock.rate()
