"""A head is trained on what a frozen encoder makes of texts.

Cause: the encoder runs again over the same texts in every epoch, without dropout or augmentation.
Fix: what it makes of each text is computed once.
"""

import torch
from common import Clock, options, texts, tokenizer
from torch.utils.data import DataLoader
from transformers import BertConfig, BertModel, DataCollatorWithPadding

opts = options()
torch.manual_seed(0)
words = tokenizer()
size = {"hidden_size": 128, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 512}
encoder = BertModel(BertConfig(vocab_size=len(words), **size)).eval()
head = torch.nn.Sequential(torch.nn.Linear(128, 2048), torch.nn.ReLU(), torch.nn.Linear(2048, 8))
optimizer = torch.optim.AdamW(head.parameters())
said = texts(512)
rows = [{**words(text, truncation=True), "label": len(text) % 8} for text in said]
pad = DataCollatorWithPadding(words)


@torch.no_grad()
def encoded(batch):
    return encoder(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"]).pooler_output


if opts.fixed:
    rows = [{"known": encoded(pad([row]))[0], "label": torch.tensor(row["label"])} for row in rows]
loader = DataLoader(rows, 16, shuffle=True, collate_fn=None if opts.fixed else pad)
clock, over = Clock(opts.seconds), False
while not over:
    for batch in loader:
        optimizer.zero_grad()
        features = batch["known"] if opts.fixed else encoded(batch)
        labels = batch["label"] if opts.fixed else batch["labels"]
        loss = torch.nn.functional.cross_entropy(head(features), labels)
        loss.backward()
        optimizer.step()
        over = clock.done(len(labels))
        if over:
            break
clock.rate()
