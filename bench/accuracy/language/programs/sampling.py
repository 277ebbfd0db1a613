"""A classifier of texts whose batches hold texts of like length, by a sampler of one's own.

Cause: for each batch the sampler sorts all texts by how near their length is to that of a random one.
Fix: it sorts them once, and takes neighbours.
"""

import random

import torch
from common import Clock, options, texts, tokenizer
from torch.utils.data import DataLoader, Sampler
from transformers import BertConfig, BertForSequenceClassification, DataCollatorWithPadding

opts = options()
torch.manual_seed(0)
words = tokenizer()
rows = [{**words(text, truncation=True), "label": len(text) % 8} for text in texts(40_000, longest=60, typical=20)]
lengths = [len(row["input_ids"]) for row in rows]


class LikeLength(Sampler):
    def __init__(self, lengths, batch_size):
        self.lengths, self.batch_size = lengths, batch_size
        self.order = sorted(range(len(lengths)), key=lengths.__getitem__)

    def __len__(self):
        return len(self.lengths) // self.batch_size

    def __iter__(self):
        for _ in range(len(self)):
            if opts.fixed:
                start = random.randrange(len(self.order) - self.batch_size)
                yield self.order[start : start + self.batch_size]
            else:
                wanted = random.choice(self.lengths)
                near = sorted(range(len(self.lengths)), key=lambda index: abs(self.lengths[index] - wanted))
                yield near[: self.batch_size]


size = {"hidden_size": 96, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 384}
model = BertForSequenceClassification(BertConfig(vocab_size=len(words), num_labels=8, **size))
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
loader = DataLoader(rows, batch_sampler=LikeLength(lengths, 16), collate_fn=DataCollatorWithPadding(words))
clock, over = Clock(opts.seconds), False
while not over:
    for batch in loader:
        loss = model(**batch).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        over = clock.done(len(batch["labels"]))
        if over:
            break
clock.rate()
