"""Optimising a large embedding takes nearly all of the step.

Source: "Slow optimization with large vocabulary size embedding matrices", https://github.com/pytorch/pytorch/issues/5309
Cause: the gradient of the table is dense: every row is zeroed, and updated by the optimizer, for a few rows that
  were used.
Fix: Embedding(sparse=True), with an optimizer for sparse gradients.
"""

import torch
from clock import Clock, options

opts = options()
torch.manual_seed(0)


class Tagger(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.words = torch.nn.Embedding(200_000, 64, sparse=opts.fixed)
        self.lstm = torch.nn.LSTM(64, 64, batch_first=True)
        self.tags = torch.nn.Linear(64, 20)

    def forward(self, words):
        return self.tags(self.lstm(self.words(words))[0])


model = Tagger()
rest = [*model.lstm.parameters(), *model.tags.parameters()]
if opts.fixed:
    optimizers = [torch.optim.SparseAdam(model.words.parameters()), torch.optim.Adam(rest)]
else:
    optimizers = [torch.optim.Adam(model.parameters())]
noise = torch.Generator().manual_seed(1)
clock = Clock(opts.seconds)
while True:
    words = torch.randint(200_000, (16, 24), generator=noise)
    tags = words % 20
    for optimizer in optimizers:
        optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(words).flatten(0, 1), tags.flatten())
    loss.backward()
    for optimizer in optimizers:
        optimizer.step()
    if clock.done(len(words), loss):
        break
clock.rate()
