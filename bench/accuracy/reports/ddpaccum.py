"""Two ranks with gradient accumulation are hardly faster than one.        torchrun --nproc-per-node 2 ddpaccum.py

Source: "We Need Acceleration for Gradient Accumulation in DDP mode", https://github.com/pytorch/pytorch/issues/43201
  (also huggingface/accelerate #1153: 2x)
Cause: each backward exchanges all gradients, also those of the micro-batches between two optimizer steps.
Fix: model.no_sync() for all micro-batches but the last.
"""

import contextlib

import torch
from clock import Clock, options
from torch.nn.parallel import DistributedDataParallel

opts = options()
torch.distributed.init_process_group("gloo")
rank = torch.distributed.get_rank()
torch.manual_seed(0)
model = DistributedDataParallel(
    torch.nn.Sequential(
        torch.nn.Linear(512, 2048),
        torch.nn.ReLU(),
        torch.nn.Linear(2048, 2048),
        torch.nn.ReLU(),
        torch.nn.Linear(2048, 512),
    )
)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
noise = torch.Generator().manual_seed(rank)
ACCUMULATE = 8
clock = Clock(opts.seconds)
over = torch.zeros(1)
micro = 0
while not over:
    x = torch.randn(64, 512, generator=noise)
    micro += 1
    last = micro % ACCUMULATE == 0
    with contextlib.nullcontext() if last or not opts.fixed else model.no_sync():
        loss = (model(x) - x).square().mean() / ACCUMULATE
        loss.backward()
    if last:
        optimizer.step()
        optimizer.zero_grad()
    stop = clock.done(len(x), loss if rank == 0 else None)
    if last:
        over[0] = float(stop)
        torch.distributed.broadcast(over, 0)
if rank == 0:
    clock.rate()
torch.distributed.destroy_process_group()
