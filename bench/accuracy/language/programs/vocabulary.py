"""A classifier of texts over a vocabulary of many languages.

Cause: the gradient of the large embedding is dense, and the optimizer updates all of its rows.
Fix: sparse=True, with SparseAdam for that table.
"""

import torch
from common import Clock, options
from torch import nn

opts = options()
torch.manual_seed(0)
WORDS, WIDTH = 120_000, 64
table = nn.Embedding(WORDS, WIDTH, sparse=opts.fixed)
layer = nn.TransformerEncoderLayer(WIDTH, 4, 4 * WIDTH, batch_first=True)
rest = nn.ModuleDict({"layers": nn.TransformerEncoder(layer, 2), "out": nn.Linear(WIDTH, 8)})
if opts.fixed:
    optimizers = [torch.optim.SparseAdam(table.parameters()), torch.optim.AdamW(rest.parameters())]
else:
    optimizers = [torch.optim.AdamW([*table.parameters(), *rest.parameters()])]
clock, over = Clock(opts.seconds), False
while not over:
    ids, labels = torch.randint(WORDS, (16, 32)), torch.randint(8, (16,))
    for optimizer in optimizers:
        optimizer.zero_grad()
    said = rest["out"](rest["layers"](table(ids)).mean(1))
    loss = nn.functional.cross_entropy(said, labels)
    loss.backward()
    for optimizer in optimizers:
        optimizer.step()
    over = clock.done(ids.numel())
clock.rate()
