#!/usr/bin/env python3
"""Measures what findings and predictions state about PyTorch: run it when PyTorch's major version changes.

    .venv/bin/python bench/explain/torch_facts.py

Prints how many tensors of the weights' size an optimizer step reads and writes when nothing is fused, and how much
faster bfloat16 makes a training step on this CPU.
"""

from __future__ import annotations

import time
from statistics import median

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

WEIGHTS = 1000
OPTIMIZERS = {
    "Adam": (torch.optim.Adam, {}),
    "AdamW": (torch.optim.AdamW, {}),
    "SGD, momentum": (torch.optim.SGD, {"momentum": 0.9}),
    "SGD, momentum and weight decay": (torch.optim.SGD, {"momentum": 0.9, "weight_decay": 1e-4}),
}


class CountTensors(TorchDispatchMode):
    """How many tensors of WEIGHTS elements operators read and write."""

    def __init__(self) -> None:
        super().__init__()
        self.tensors = 0

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        result = operator(*args, **(kwargs or {}))
        if not any(word in str(operator) for word in ("detach", "view", "alias")):
            touched = tree_leaves((args, kwargs)) + tree_leaves(result)
            self.tensors += sum(isinstance(one, torch.Tensor) and one.numel() == WEIGHTS for one in touched)
        return result


def tensors_of_a_step(kind: type, options: dict) -> int:
    weights = nn.Parameter(torch.randn(WEIGHTS))
    weights.grad = torch.randn(WEIGHTS)
    optimizer = kind([weights], lr=1e-3, foreach=False, fused=False, **options)
    optimizer.step()  # makes the state
    with CountTensors() as count:
        optimizer.step()
    return count.tensors


def networks() -> dict[str, tuple[nn.Module, torch.Tensor]]:
    def block(channels_in: int, channels: int) -> list[nn.Module]:
        return [nn.Conv2d(channels_in, channels, 3, 2, 1), nn.BatchNorm2d(channels), nn.ReLU()]

    blocks = [*block(3, 64), *block(64, 128), *block(128, 256)]
    convolutions = nn.Sequential(*blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten())
    layer = nn.TransformerEncoderLayer(256, 4, 1024, batch_first=True)
    return {
        "convolutions": (convolutions, torch.randn(16, 3, 64, 64)),
        "perceptron": (nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512)), torch.randn(128, 784)),
        "transformer": (nn.Sequential(layer, nn.Flatten()), torch.randn(16, 64, 256)),
    }


def gain_of_bfloat16(network: nn.Module, inputs: torch.Tensor, pairs: int = 40) -> float:
    """Steps with and without, in turn; the ratio of the medians."""
    optimizer = torch.optim.SGD(network.parameters(), lr=1e-3)
    seconds: dict[bool, list[float]] = {False: [], True: []}
    for step in range(2 * pairs):
        begin = time.perf_counter()
        with torch.autocast("cpu", torch.bfloat16, enabled=step % 2 == 1):
            loss = network(inputs).float().square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        seconds[step % 2 == 1].append(time.perf_counter() - begin)
    return median(seconds[False][5:]) / median(seconds[True][5:])


if __name__ == "__main__":
    torch.manual_seed(0)
    for name, (kind, options) in OPTIMIZERS.items():
        print(f"{name}: {tensors_of_a_step(kind, options)} tensors of the weights' size read and written in a step")
    for name, (network, inputs) in networks().items():
        print(f"{name}: bfloat16 on this CPU {gain_of_bfloat16(network, inputs):.2f}x")
