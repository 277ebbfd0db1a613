"""A GPT whose learning-rate schedule is applied within the compiled function.

Cause: the step counter is a Python number: each value is a program of its own, until torch.compile gives up on it.
Fix: it is a tensor.
"""

import torch
from common import WORDS, Clock, options
from gpt import GPT, get_batch

opts = options()
torch.manual_seed(0)
model = GPT(WORDS, 64, layers=2)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
data = torch.randint(WORDS, (500_000,))


@torch.compile(dynamic=False, backend="aot_eager")
def smoothed(parts, step):
    """Each weight's distance from where it began, in a running mean."""
    return [part * (1 - 1 / (step + 1)) for part in parts]


clock, over, step = Clock(opts.seconds), False, 0
parts = [torch.zeros_like(weight) for weight in model.parameters()]
while not over:
    x, y = get_batch(data, 4, 64)
    loss = model(x, y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    step += 1
    parts = smoothed(parts, torch.tensor(float(step)) if opts.fixed else float(step))
    over = clock.done(x.numel())
clock.rate()
