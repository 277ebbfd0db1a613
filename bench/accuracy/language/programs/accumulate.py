"""Two ranks train a language model with Accelerate and gradient accumulation.      torchrun --nproc-per-node 2

Cause: the loop accumulates by itself, and DDP exchanges gradients in each backward pass.
Fix: accelerator.accumulate(model).
"""

import contextlib

import torch
from accelerate import Accelerator
from common import WORDS, Clock, end_of_rank, options
from gpt import GPT
from torch.utils.data import DataLoader, TensorDataset

opts = options()
ACCUMULATE = 8
accelerator = Accelerator(cpu=True, gradient_accumulation_steps=ACCUMULATE if opts.fixed else 1)
torch.manual_seed(0)
ids = torch.randint(WORDS, (4096, 65))
model = GPT(WORDS, 64, layers=3)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
loader = DataLoader(TensorDataset(ids), batch_size=8, shuffle=True, drop_last=True)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
clock, over = Clock(opts.seconds), torch.zeros(1)
while not over:
    for step, (rows,) in enumerate(loader):
        last = (step + 1) % ACCUMULATE == 0
        with accelerator.accumulate(model) if opts.fixed else contextlib.nullcontext():
            loss = model(rows[:, :-1], rows[:, 1:]) / (1 if opts.fixed else ACCUMULATE)
            accelerator.backward(loss)
            if opts.fixed or last:
                optimizer.step()
                optimizer.zero_grad()
        done = clock.done(rows.numel())
        if last:
            over[0] = float(done)
            torch.distributed.broadcast(over, 0)
            if over:
                break
end_of_rank(clock, accelerator.process_index)
