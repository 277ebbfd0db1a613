"""Two ranks train a language model that fully_shard divides, with gradient accumulation.   torchrun --nproc-per-node 2

Cause: each backward pass reduces all gradients, also those of the micro-batches between two optimizer steps.
Fix: model.set_requires_gradient_sync(False) for all micro-batches but the last.
"""

import torch
from common import WORDS, Clock, end_of_rank, options
from gpt import GPT, get_batch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

opts = options()
torch.distributed.init_process_group("gloo")
rank = torch.distributed.get_rank()
mesh = init_device_mesh("cpu", (torch.distributed.get_world_size(),))
torch.manual_seed(0)
model = GPT(WORDS, 64, layers=3)
for block in model.h:
    fully_shard(block, mesh=mesh)
fully_shard(model, mesh=mesh)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
noise = torch.Generator().manual_seed(rank)
data = torch.randint(WORDS, (500_000,))
ACCUMULATE = 8
clock, over, micro = Clock(opts.seconds), torch.zeros(1), 0
while not over:
    x, y = get_batch(data, 8, 64, noise)
    micro += 1
    last = micro % ACCUMULATE == 0
    if opts.fixed:
        model.set_requires_gradient_sync(last)
    loss = model(x, y) / ACCUMULATE
    loss.backward()
    if last:
        optimizer.step()
        optimizer.zero_grad()
    done = clock.done(x.numel())
    if last:
        over[0] = float(done)
        torch.distributed.broadcast(over, 0)
end_of_rank(clock, rank)
