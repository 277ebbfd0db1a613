"""A GPT in a loop of one's own.

Cause: torch.autograd.set_detect_anomaly(True), left on after a NaN had been found.
Fix: without it.
"""

import torch
from common import WORDS, Clock, options
from gpt import GPT, get_batch

opts = options()
torch.manual_seed(0)
torch.autograd.set_detect_anomaly(not opts.fixed)
model = GPT(WORDS, 64, width=64, layers=6)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
data = torch.randint(WORDS, (500_000,))
clock, over = Clock(opts.seconds), False
while not over:
    x, y = get_batch(data, 4, 64)
    loss = model(x, y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    over = clock.done(x.numel())
clock.rate()
