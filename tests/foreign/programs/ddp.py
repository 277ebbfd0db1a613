"""Distributed training for torchrun."""

import os
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

dist.init_process_group("gloo")
data = TensorDataset(torch.randn(800, 16), torch.randint(0, 2, (800,)))
loader = DataLoader(data, batch_size=8, sampler=DistributedSampler(data))
model = DistributedDataParallel(torch.nn.Linear(16, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
steps = samples = 0
for _epoch in range(2):
    for x, y in loader:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        steps += 1
        samples += len(x)
if dist.get_rank() == 0:
    print("steps", steps, "samples", samples)
dist.barrier()
dist.destroy_process_group()
sys.stdout.flush()
os._exit(0)  # torch 2.13's gloo threads sometimes abort a regular exit, also without fullbore: 2 of 6 runs here
