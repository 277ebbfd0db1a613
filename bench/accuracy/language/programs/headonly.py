"""The head of a classifier is trained on a pretrained encoder.

Cause: the optimizer has the head alone, but gradients are computed for the encoder, too.
Fix: encoder.requires_grad_(False).
"""

import torch
from common import Clock, options, texts, tokenizer
from torch.utils.data import DataLoader
from transformers import BertConfig, BertModel, DataCollatorWithPadding

opts = options()
torch.manual_seed(0)
words = tokenizer()
size = {"hidden_size": 128, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 512}
encoder = BertModel(BertConfig(vocab_size=len(words), **size))
head = torch.nn.Sequential(torch.nn.Linear(128, 256), torch.nn.ReLU(), torch.nn.Linear(256, 8))
if opts.fixed:
    encoder.requires_grad_(False)
optimizer = torch.optim.AdamW(head.parameters())
rows = [
    {**words(text, truncation=True), "label": len(text) % 8}
    for text in sorted(texts(2048, longest=80, typical=60), key=len)
]
loader = DataLoader(rows, 16, collate_fn=DataCollatorWithPadding(words))
clock, over = Clock(opts.seconds), False
while not over:
    for batch in loader:
        optimizer.zero_grad()
        made = encoder(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"])
        loss = torch.nn.functional.cross_entropy(head(made.pooler_output), batch["labels"])
        loss.backward()
        optimizer.step()
        over = clock.done(int(batch["attention_mask"].sum()))
        if over:
            break
clock.rate()
