"""The FLOP/s that a run's report says of its model, against the operators and shapes of the same run's trace."""

from __future__ import annotations

import json
import math
import pathlib
import subprocess
from typing import Any

import pytest

FIRST, STEPS = 20, 4
PROGRAM = """
import sys
import torch
from torch import nn
from torch.nn import functional
torch.manual_seed(1)
torch.set_num_threads(1)
MODEL = sys.argv[1]
ROWS, LENGTH, WIDTH, WORDS, HEADS = 8, 64, 128, 512, 4

class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
    def forward(self, x):
        q, k, v = (each.view(*x.shape[:2], HEADS, -1).transpose(1, 2) for each in self.qkv(x).chunk(3, -1))
        if MODEL == "fused":
            y = functional.scaled_dot_product_attention(q, k, v)
        else:
            y = torch.softmax(q @ k.transpose(-1, -2) / 6, -1) @ v
        return self.out(y.transpose(1, 2).reshape(x.shape))

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.attention = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH), Attention()
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
    def forward(self, x):
        x = x + self.attention(self.first(x))
        return x + self.down(functional.gelu(self.up(self.second(x))))

class Gpt(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.blocks, self.head = nn.ModuleList(Block() for _ in range(3)), nn.Linear(WIDTH, WORDS, bias=False)
        self.head.weight = self.words.weight
    def forward(self, ids):
        x = self.words(ids) + self.places(torch.arange(LENGTH))
        for block in self.blocks:
            x = block(x)
        return self.head(x)

images = nn.Sequential(nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 64, 3, stride=2, padding=1),
    nn.BatchNorm2d(64), nn.ReLU(), nn.Conv2d(64, 64, 3, stride=2), nn.Flatten(), nn.Linear(64 * 49, 10))
model = images if MODEL == "images" else Gpt()
data = torch.randn(800, 3, 32, 32) if MODEL == "images" else torch.randint(1, WORDS, (800, LENGTH))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
for batch in torch.utils.data.DataLoader(data, batch_size=ROWS):
    optimizer.zero_grad()
    model(batch).square().mean().backward()
    optimizer.step()
"""


def of_operator(event: dict[str, Any]) -> float:
    """By the shapes alone, as the operators' definitions have it; the gradients of fused attention without what it
    computes again."""
    name, arguments = event["name"], event["args"]
    shapes = arguments.get("Input Dims", [])
    if name in ("aten::mm", "aten::bmm"):
        return 2 * math.prod(shapes[0]) * shapes[1][-1]
    if name == "aten::addmm":
        return 2 * math.prod(shapes[1]) * shapes[2][-1]
    if name.startswith("aten::_scaled_dot_product_flash_attention_for_cpu"):
        query, key = shapes[1:3] if name.endswith("backward") else shapes[:2]
        return (2 if name.endswith("backward") else 1) * 4 * math.prod(query) * key[-2]
    if name == "aten::convolution_backward":
        gradient, _, weight = shapes[:3]
        wanted = json.loads(arguments["Concrete Inputs"][10].lower())
        return sum(wanted[:2]) * 2 * math.prod(weight) * math.prod(gradient) / gradient[1]
    return 0


def of_convolutions(events: list[dict[str, Any]]) -> float:
    """Forward: the shape of the result is that of its gradient in the backward pass."""
    backward = [e["args"]["Input Dims"] for e in events if e["name"] == "aten::convolution_backward"]
    return sum(2 * math.prod(weight) * math.prod(gradient) / gradient[1] for gradient, _, weight, *_ in backward)


def of_a_step(trace: pathlib.Path) -> float:
    text = subprocess.run(["zstd", "-dc", str(trace)], capture_output=True, check=True).stdout
    events = [event for event in json.loads(text)["traceEvents"] if event.get("cat") == "cpu_op"]
    return (sum(map(of_operator, events)) + of_convolutions(events)) / STEPS


@pytest.mark.long
@pytest.mark.parametrize("model", ["products", "fused", "images"])
def test_the_rate_is_that_of_the_operators_of_its_own_trace(fullbore, torch_python, model):
    flags = ["--windows", f"{STEPS}@{FIRST}", "--keep-windows"]
    done = fullbore.run(torch_python, fullbore.script("train.py", PROGRAM), model, flags=flags)
    assert done.code == 0, done.stderr
    said = done.report["throughput"]
    (trace,) = fullbore.directory.rglob("*.rank0-step20.json.zst")
    of_model, of_trace = said["model_flops_per_s"] / said["steps_per_s"], of_a_step(trace)
    print(f"{model}: {of_model / 1e6:.2f} MFLOP a step by the modules, {of_trace / 1e6:.2f} by the trace")
    assert of_model == pytest.approx(of_trace, rel=0.03)
    assert "mfu" not in said, "nobody knows the peak of a CPU"
