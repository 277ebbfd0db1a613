"""Two ranks of fully_shard with gradient accumulation.                    torchrun --nproc-per-node 2 fsdpaccum.py

Source: the documentation of fully_shard, which has no no_sync(): set_requires_gradient_sync "can be used to implement
  gradient accumulation without communication", https://docs.pytorch.org/docs/stable/distributed.fsdp.fully_shard.html
Cause: each backward reduces all gradients, also those of the micro-batches between two optimizer steps.
Fix: model.set_requires_gradient_sync(False) for all micro-batches but the last.
"""

import os

import torch
from clock import Clock, options
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

opts = options()
torch.distributed.init_process_group("gloo")
rank = torch.distributed.get_rank()
torch.manual_seed(0)
mesh = init_device_mesh("cpu", (torch.distributed.get_world_size(),))
model = torch.nn.Sequential(*(torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU()) for _ in range(6)))
for module in (*model, model):
    fully_shard(module, mesh=mesh)
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
    if opts.fixed:
        model.set_requires_gradient_sync(last)
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
os._exit(0)  # torch 2.13's gloo threads sometimes abort a regular exit
