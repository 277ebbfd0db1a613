"""A GPT in a loop of one's own.

Cause: torch.set_default_dtype(torch.float64), set once to compare with another implementation.
Fix: without it.
"""

import torch
from common import WORDS, Clock, options
from gpt import GPT, get_batch

opts = options()
torch.manual_seed(0)
if not opts.fixed:
    torch.set_default_dtype(torch.float64)
model = GPT(WORDS)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
data = torch.randint(WORDS, (500_000,))
clock, over = Clock(opts.seconds), False
while not over:
    x, y = get_batch(data, 8, 128)
    loss = model(x, y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    over = clock.done(x.numel())
clock.rate()
