"""Two ranks train a language model on texts of different lengths.                   torchrun --nproc-per-node 2

Cause: the texts are sorted by length, and each rank takes one half of them.
Fix: in each step both ranks take texts of like length.
"""

import random

import torch
from common import WORDS, Clock, end_of_rank, options, texts, tokenizer
from gpt import GPT
from torch.nn.parallel import DistributedDataParallel

opts = options()
torch.distributed.init_process_group("gloo")
rank, ranks = torch.distributed.get_rank(), torch.distributed.get_world_size()
torch.manual_seed(0)
words = tokenizer(129)
rows = sorted((words(text, truncation=True)["input_ids"] for text in texts(4096, 128)), key=len)
half = len(rows) // ranks
model = DistributedDataParallel(GPT(WORDS + 3, layers=3))
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
draw, own = random.Random(0), random.Random(rank)  # the same in both ranks, and another
clock, over = Clock(opts.seconds), torch.zeros(1)
while not over:
    begin = draw.randrange(len(rows) - 64) if opts.fixed else None
    batch = own.sample(rows[rank * half : (rank + 1) * half] if begin is None else rows[begin : begin + 64], 8)
    wide = max(map(len, batch))
    ids = torch.tensor([row + [0] * (wide - len(row)) for row in batch])
    loss = model(ids[:, :-1], ids[:, 1:])
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    over[0] = float(clock.done(sum(map(len, batch))))
    torch.distributed.broadcast(over, 0)
end_of_rank(clock, rank)
