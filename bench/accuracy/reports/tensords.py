"""A DataLoader over tensors in memory is many times slower than slicing them.

Source: "Dataloader extremely slow on in-memory datasets", https://github.com/pytorch/pytorch/issues/106704 (also #4959)
Cause: each row is indexed by itself, and the rows are collated into a batch again.
Fix: index a whole batch at once.
"""

import torch
from clock import Clock, options
from torch.utils.data import DataLoader, TensorDataset

opts = options()
torch.manual_seed(0)
x, y = torch.randn(200_000, 40), torch.randint(2, (200_000,)).float()
model = torch.nn.Sequential(
    torch.nn.Linear(40, 128), torch.nn.ReLU(), torch.nn.Linear(128, 128), torch.nn.ReLU(), torch.nn.Linear(128, 1)
)
optimizer = torch.optim.Adam(model.parameters())


def slices():
    for rows in torch.randperm(len(x)).split(1024):
        yield x[rows], y[rows]


loader = DataLoader(TensorDataset(x, y), batch_size=1024, shuffle=True)
clock = Clock(opts.seconds)
over = False
while not over:
    for features, labels in slices() if opts.fixed else loader:
        optimizer.zero_grad()
        loss = torch.nn.functional.binary_cross_entropy_with_logits(model(features)[:, 0], labels)
        loss.backward()
        optimizer.step()
        over = clock.done(len(labels), loss)
        if over:
            break
clock.rate()
