"""Inference with transformers: several passes forward a batch, a batch is a step."""

import torch
from torch.utils.data import DataLoader
from transformers import GPT2Config, GPT2LMHeadModel

torch.manual_seed(0)
model = GPT2LMHeadModel(GPT2Config(vocab_size=100, n_positions=32, n_embd=16, n_layer=1, n_head=2)).eval()
steps = samples = 0
for prompts in DataLoader(torch.randint(0, 99, (90, 8)), batch_size=4):
    mask = torch.ones_like(prompts)
    model.generate(prompts, attention_mask=mask, max_new_tokens=4, do_sample=False, pad_token_id=99)
    steps += 1
    samples += len(prompts)
print("steps", steps, "samples", samples)
