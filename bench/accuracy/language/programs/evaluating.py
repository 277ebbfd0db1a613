"""A GPT in a loop of one's own, which estimates its losses now and then.

Cause: it does so every ten steps, over ten batches of both halves of the data.
Fix: every forty steps.
"""

import torch
from common import WORDS, Clock, options
from gpt import GPT, get_batch

opts = options()
EVAL_INTERVAL, EVAL_ITERS = (40 if opts.fixed else 10), 10
torch.manual_seed(0)
model = GPT(WORDS, 64, layers=3)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
halves = {"train": torch.randint(WORDS, (500_000,)), "val": torch.randint(WORDS, (50_000,))}


@torch.no_grad()
def estimate_loss():
    model.eval()
    out = {}
    for name, data in halves.items():
        losses = [model(*get_batch(data, 8, 64)).item() for _ in range(EVAL_ITERS)]
        out[name] = sum(losses) / len(losses)
    model.train()
    return out


clock, over, step = Clock(opts.seconds), False, 0
while not over:
    if step % EVAL_INTERVAL == 0:
        losses = estimate_loss()
        print(f"step {step}: train loss {losses['train']:.4f}, val loss {losses['val']:.4f}", flush=True)
    x, y = get_batch(halves["train"], 8, 64)
    loss = model(x, y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    step += 1
    over = clock.done(x.numel())
clock.rate()
