"""A GPT on the beginnings of long documents.

Cause: the loop tokenises the whole documents of each batch, and cuts them off afterwards (truncation=True).
Fix: all documents are tokenised once, before the training.
"""

import random

import torch
from common import Clock, options, texts, tokenizer
from gpt import GPT

opts = options()
torch.manual_seed(0)
documents = texts(400, longest=4000, typical=2500)
words = tokenizer()


def encode(batch):
    return words(batch, truncation=True, max_length=65, padding="max_length", return_tensors="pt")["input_ids"]


model = GPT(len(words), 64, layers=3)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
known = encode(documents) if opts.fixed else None
clock, over = Clock(opts.seconds), False
while not over:
    chosen = random.sample(range(len(documents)), 8)
    ids = encode([documents[number] for number in chosen]) if known is None else known[chosen]
    loss = model(ids[:, :-1], ids[:, 1:])
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    over = clock.done(ids.numel())
clock.rate()
