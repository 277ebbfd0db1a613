"""In the manner of nanoGPT's train.py: batches cut from a file of tokens, several micro steps an update, a scaler,
clipping, and an estimate of the loss now and then."""

import math
from contextlib import nullcontext

import numpy as np
import torch
import torch.nn as nn
from torch.nn import functional as F

block_size, vocab, n_embd, n_head, batch_size = 16, 65, 32, 2, 4
gradient_accumulation_steps, max_iters, eval_interval, eval_iters = 5, 60, 20, 3


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(n_embd), nn.LayerNorm(n_embd)
        self.c_attn, self.c_proj = nn.Linear(n_embd, 3 * n_embd), nn.Linear(n_embd, n_embd)
        self.mlp = nn.Sequential(nn.Linear(n_embd, 4 * n_embd), nn.GELU(), nn.Linear(4 * n_embd, n_embd))

    def forward(self, x):
        B, T, C = x.size()
        parts = self.c_attn(self.ln_1(x)).split(n_embd, dim=2)
        q, k, v = (part.view(B, T, n_head, C // n_head).transpose(1, 2) for part in parts)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.c_proj(y.transpose(1, 2).contiguous().view(B, T, C))
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocab, n_embd), nn.Embedding(block_size, n_embd)
        self.h = nn.ModuleList([Block() for _ in range(2)])
        self.lm_head = nn.Linear(n_embd, vocab, bias=False)

    def forward(self, idx, targets):
        x = self.wte(idx) + self.wpe(torch.arange(idx.size(1)))
        for block in self.h:
            x = block(x)
        logits = self.lm_head(x)
        return logits, F.cross_entropy(logits.view(-1, vocab), targets.view(-1))


np.random.randint(0, vocab, 20000).astype(np.uint16).tofile("train.bin")


def get_batch():
    data = np.memmap("train.bin", dtype=np.uint16, mode="r")
    ix = torch.randint(len(data) - block_size, (batch_size,))
    x = torch.stack([torch.from_numpy(data[i : i + block_size].astype(np.int64)) for i in ix])
    y = torch.stack([torch.from_numpy(data[i + 1 : i + 1 + block_size].astype(np.int64)) for i in ix])
    return x, y


@torch.no_grad()
def estimate_loss(model):
    model.eval()
    for _ in range(eval_iters):
        X, Y = get_batch()
        model(X, Y)[1].item()
    model.train()


model = GPT()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.1, betas=(0.9, 0.95))
scaler = torch.amp.GradScaler("cpu", enabled=False)
iter_num = 0
X, Y = get_batch()
while iter_num < max_iters:
    lr = 1e-4 + 0.5 * (1.0 + math.cos(math.pi * iter_num / max_iters)) * 9e-4
    for param_group in optimizer.param_groups:
        param_group["lr"] = lr
    if iter_num % eval_interval == 0:
        estimate_loss(model)
        torch.save({"model": model.state_dict(), "iter_num": iter_num}, "ckpt.pt")
    for _ in range(gradient_accumulation_steps):
        with nullcontext():
            logits, loss = model(X, Y)
            loss = loss / gradient_accumulation_steps
        X, Y = get_batch()
        scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad(set_to_none=True)
    iter_num += 1
print("steps", iter_num)
