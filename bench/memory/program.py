"""Programs that use memory as people's do, for the device of device.c.

    program.py KIND SEED [--batch N] [--oom] --into SNAPSHOT

Prints what PyTorch counts at the end, as JSON: {"peak_allocated": ..., "peak_reserved": ..., "oom": ...}. The same KIND
and SEED make the same requests; --batch is how many times as large its batch is.
"""

from __future__ import annotations

import argparse
import json
import random

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

MIB = 1 << 20
STEPS = 4


class Attention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.into, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows, length, width = x.shape
        parts = self.into(x).view(rows, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        scores = parts[0] @ parts[1].transpose(-1, -2) / (width // self.heads) ** 0.5
        mixed = scores.softmax(-1) @ parts[2]
        return self.out(mixed.transpose(1, 2).reshape(rows, length, width))


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.before, self.after = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.before(x))
        return x + self.mlp(self.after(x))


class Model(nn.Module):
    def __init__(self, chance: random.Random) -> None:
        super().__init__()
        width = chance.choice([256, 384, 768])
        self.words = chance.choice([5000, 32000])
        self.embed = nn.Embedding(self.words, width)
        self.blocks = nn.ModuleList(Block(width, width // 64) for _ in range(chance.randint(2, 8)))
        self.head = nn.Linear(width, self.words, bias=chance.random() < 0.5)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def optimizer_of(model: nn.Module, chance: random.Random) -> torch.optim.Optimizer:
    kind = chance.choice(["adam", "fused", "sgd", "plain"])
    if kind == "sgd":
        return torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    return torch.optim.AdamW(model.parameters(), fused=kind == "fused", foreach=kind == "adam")


def train(lengths: list[int], rows: int, chance: random.Random) -> None:
    """A transformer on batches of these lengths, one a step."""
    model = Model(chance).cuda()
    optimizer = optimizer_of(model, chance)
    loss_of = nn.CrossEntropyLoss()
    for length in lengths:
        tokens = torch.empty(rows, length, dtype=torch.int64, device="cuda")
        loss = loss_of(model(tokens).view(-1, model.words), tokens.view(-1))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


def fixed(chance: random.Random, batch: int) -> None:
    train([chance.choice([128, 200, 256])] * STEPS, batch * chance.choice([2, 4, 7]), chance)


def varied(chance: random.Random, batch: int) -> None:
    """Each batch as long as its longest sample: what fragments."""
    lengths = [chance.randint(20, 512) for _ in range(4 * STEPS)]
    train(lengths, batch * chance.choice([2, 4, 7]), chance)


def perceptron(chance: random.Random, batch: int) -> None:
    widths = [chance.choice([100, 1000, 2048]) for _ in range(chance.randint(2, 6))]
    layers = [part for a, b in zip(widths, widths[1:]) for part in (nn.Linear(a, b), nn.ReLU())]
    model = nn.Sequential(*layers).cuda()
    optimizer = optimizer_of(model, chance)
    rows = batch * chance.choice([64, 500, 4000])
    for _ in range(STEPS):
        model(torch.empty(rows, widths[0], device="cuda")).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()


def micro(chance: random.Random, batch: int) -> None:
    """Gradients of several micro-batches, with blocks that are computed again in the backward pass."""
    model = Model(chance).cuda()
    optimizer = optimizer_of(model, chance)
    loss_of = nn.CrossEntropyLoss()
    again = chance.random() < 0.5
    length, rows, parts = chance.choice([100, 256]), batch * chance.choice([1, 2, 4]), chance.randint(2, 4)
    for _ in range(STEPS):
        for _ in range(parts):
            tokens = torch.empty(rows, length, dtype=torch.int64, device="cuda")
            x = model.embed(tokens)
            for block in model.blocks:
                x = checkpoint(block, x, use_reentrant=False) if again else block(x)
            loss_of(model.head(x).view(-1, model.words), tokens.view(-1)).backward()
        optimizer.step()
        optimizer.zero_grad()


def generates(chance: random.Random, batch: int) -> None:
    """A cache of keys and values that is made anew, one longer, with each token."""
    rows, width, layers = batch * chance.choice([4, 16]), chance.choice([512, 1024]), chance.randint(4, 12)
    for _ in range(3):
        caches = [torch.empty(rows, chance.randint(20, 300), width, device="cuda") for _ in range(layers)]
        for _ in range(40):
            for at, cache in enumerate(caches):
                caches[at] = torch.cat([cache, torch.empty(rows, 1, width, device="cuda")], 1)


def keeps(chance: random.Random, batch: int) -> None:
    """Losses that are kept for the log, each with its graph and what that holds."""
    width, rows = chance.choice([1000, 2048]), batch * chance.choice([500, 4000])
    model = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1)).cuda()
    optimizer = optimizer_of(model, chance)
    for _ in range(4 * STEPS):
        loss = model(torch.empty(rows, width, device="cuda")).square().mean()
        loss.backward(retain_graph=True)
        optimizer.step()
        optimizer.zero_grad()
        KEPT.append(loss)


KEPT: list[torch.Tensor] = []


def requests(chance: random.Random, batch: int) -> None:
    """Any sizes, in any order, on two streams, with the cache emptied now and then."""
    side = torch.cuda.Stream()
    held: list[torch.Tensor] = []
    for _ in range(600):
        if held and chance.random() < 0.5:
            held.pop(chance.randrange(len(held)))
        elif chance.random() < 0.01:
            torch.cuda.empty_cache()
        else:
            size = batch * int(2 ** chance.uniform(4, 26))
            with torch.cuda.stream(side if chance.random() < 0.2 else torch.cuda.current_stream()):
                held.append(torch.empty(size, dtype=torch.uint8, device="cuda"))
                if chance.random() < 0.1:
                    held[-1].record_stream(torch.cuda.current_stream())


KINDS = {each.__name__: each for each in (fixed, varied, micro, perceptron, generates, keeps, requests)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("seed", type=int)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--into", required=True)
    given = parser.parse_args()
    torch.cuda.memory._record_memory_history(max_entries=1 << 20, stacks="python")
    failed = False
    try:
        KINDS[given.kind](random.Random(given.seed), given.batch)
    except torch.OutOfMemoryError:
        failed = True
    torch.cuda.memory._dump_snapshot(given.into)
    counted = {"peak_allocated": torch.cuda.max_memory_allocated(), "peak_reserved": torch.cuda.max_memory_reserved()}
    print(json.dumps({**counted, "oom": failed}))


if __name__ == "__main__":
    main()
