"""A GPT in a loop of one's own, with activation checkpointing.

Cause: every block is computed again in the backward pass, for a batch that needs no such saving.
Fix: without torch.utils.checkpoint.
"""

import torch
from common import WORDS, Clock, options
from gpt import GPT, get_batch
from torch.utils.checkpoint import checkpoint

opts = options()
torch.manual_seed(0)
model = GPT(WORDS)
if not opts.fixed:
    model.run_block = lambda block, x: checkpoint(block, x, use_reentrant=False)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
data = torch.randint(WORDS, (500_000,))
clock, over = Clock(opts.seconds), False
while not over:
    x, y = get_batch(data, 12, 128)
    loss = model(x, y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    over = clock.done(x.numel())
clock.rate()
