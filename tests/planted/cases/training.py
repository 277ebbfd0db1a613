"""What the planted scripts share: their own clock, photos on disk, a small network. Nothing here knows of any profiler:
a script measures with its own clock what it planted, and writes that as JSON when it ends.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from step_clock import StepClock
from torch import nn
from torch.nn import functional

SIZE = 64  # of the training images


def arguments(more: Callable[[argparse.ArgumentParser], None] = lambda parser: None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=sys.modules["__main__"].__doc__)
    parser.add_argument("--truth", type=Path, required=True, help="where to write what this script measured")
    parser.add_argument("--photos", type=Path, help="a folder of JPEG files")
    parser.add_argument("--scratch", type=Path, help="a folder to write to")
    parser.add_argument("--steps", type=int, default=60, help="of an epoch")
    parser.add_argument("--epochs", type=int, default=1, help="where the case has an ordinary loop over its loader")
    more(parser)
    torch.set_num_threads(1)
    torch.manual_seed(0)
    return parser.parse_args()


class Photos(torch.utils.data.Dataset):
    """`length` samples from the JPEG files in a folder, decoded and scaled on each access."""

    def __init__(self, folder: Path, length: int, size: int = SIZE) -> None:
        self.files = sorted(folder.rglob("*.jpg"))
        self.length = length
        self.size = size

    def __len__(self) -> int:
        return self.length

    def open(self, index: int) -> Image.Image:
        return Image.open(self.files[index % len(self.files)])

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        image = self.open(index).convert("RGB").resize((self.size, self.size), Image.BICUBIC)
        pixels = torch.from_numpy(np.array(image)).permute(2, 0, 1).float()
        return (pixels - 118) / 60, index % 10


class Network(nn.Sequential):
    """A small convolutional network. It costs about as much as decoding one photo per 8 of `width`."""

    def __init__(self, width: int = 32) -> None:
        def block(channels_in: int, channels: int) -> list[nn.Module]:
            return [nn.Conv2d(channels_in, channels, 3, 2, 1, bias=False), nn.BatchNorm2d(channels), nn.ReLU()]

        super().__init__(
            *block(3, width),
            *block(width, 2 * width),
            *block(2 * width, 4 * width),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(4 * width, 10),
        )


class Trainer:
    """One ordinary training step."""

    def __init__(self, model: nn.Module, clock: StepClock, rate: float = 0.01) -> None:
        self.model = model
        self.clock = clock
        self.optimizer = torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9)

    def step(self, inputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        loss = functional.cross_entropy(self.model(inputs), labels)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.clock.step_done()
        return loss
