#!/usr/bin/env python3
"""Trains a ResNet-18 on a folder of photos: plain PyTorch, a plain DataLoader, no trace of fullbore.

    train_resnet.py --data DIR [--workers 0] [--batch-size N] [--steps N] [--width N] [--image-size N]

DIR holds one folder per class. Runs on the GPU if there is one, with a wider network and larger images.
"""

from __future__ import annotations

import argparse
import os
import random
import time
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset


class Photos(Dataset):
    """A random crop of each photo, scaled, flipped half of the time, normalised; as torchvision does it."""

    MEAN = torch.tensor([0.485, 0.456, 0.406]).view(3, 1, 1)
    STD = torch.tensor([0.229, 0.224, 0.225]).view(3, 1, 1)

    def __init__(self, root: Path, image_size: int):
        self.image_size = image_size
        self.classes = sorted(path.name for path in root.iterdir() if path.is_dir())
        self.files = [
            (path, label) for label, name in enumerate(self.classes) for path in sorted((root / name).glob("*.jpg"))
        ]
        if not self.files:
            raise SystemExit(f"no photos in '{root}': it must hold one folder per class with .jpg files in it")

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        path, label = self.files[index]
        image = Image.open(path).convert("RGB")
        size = (self.image_size, self.image_size)
        image = image.resize(size, Image.BILINEAR, box=random_crop(*image.size))
        if random.random() < 0.5:
            image = image.transpose(Image.FLIP_LEFT_RIGHT)
        pixels = torch.from_numpy(np.array(image)).permute(2, 0, 1).float() / 255
        return (pixels - self.MEAN) / self.STD, label


def random_crop(width: int, height: int) -> tuple[float, float, float, float]:
    """A box of 25 to 100 % of the area, with an aspect ratio between 3:4 and 4:3, that lies within the image."""
    area, ratio = width * height * random.uniform(0.25, 1), random.uniform(3 / 4, 4 / 3)
    w, h = min(width, (area * ratio) ** 0.5), min(height, (area / ratio) ** 0.5)
    left, top = random.uniform(0, width - w), random.uniform(0, height - h)
    return left, top, left + w, top + h


class Block(nn.Module):
    def __init__(self, channels_in: int, channels: int, stride: int):
        super().__init__()
        self.conv1 = nn.Conv2d(channels_in, channels, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(channels)
        self.shortcut = nn.Identity()
        if stride != 1 or channels_in != channels:
            self.shortcut = nn.Sequential(
                nn.Conv2d(channels_in, channels, 1, stride, bias=False), nn.BatchNorm2d(channels)
            )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = functional.relu(self.norm1(self.conv1(x)))
        return functional.relu(self.norm2(self.conv2(out)) + self.shortcut(x))


class ResNet18(nn.Module):
    """He et al. 2015, with the width of the first stage as an argument; 64 is the paper's."""

    def __init__(self, classes: int, width: int):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width), nn.ReLU(), nn.MaxPool2d(3, 2, 1)
        )
        blocks, channels_in = [], width
        for stage in range(4):
            channels = width << stage
            blocks += [Block(channels_in, channels, 1 if stage == 0 else 2), Block(channels, channels, 1)]
            channels_in = channels
        self.blocks = nn.Sequential(*blocks)
        self.head = nn.Linear(channels_in, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.blocks(self.stem(x)).mean(dim=(2, 3)))


def parse_arguments(on_gpu: bool) -> argparse.Namespace:
    cores = len(os.sched_getaffinity(0))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="one folder per class, with .jpg files in it")
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--batch-size", type=int, default=128 if on_gpu else 32)
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--steps", type=int, help="stop after this many steps, whatever the number of epochs")
    parser.add_argument("--width", type=int, default=128 if on_gpu else 16)
    parser.add_argument("--image-size", type=int, default=224 if on_gpu else 96)
    parser.add_argument("--threads", type=int, default=max(1, cores // 2), help="for computation on the CPU")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def main() -> None:
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    args = parse_arguments(device.type == "cuda")
    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    random.seed(args.seed)

    dataset = Photos(args.data, args.image_size)
    loader = DataLoader(dataset, batch_size=args.batch_size, shuffle=True, num_workers=args.workers, drop_last=True)
    if len(loader) == 0:
        raise SystemExit(f"{len(dataset)} photos do not fill one batch of {args.batch_size}")
    model = ResNet18(len(dataset.classes), args.width).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
    epochs = args.epochs if args.steps is None else -(-args.steps // len(loader))
    last_step = args.steps or epochs * len(loader)
    print(f"{len(dataset)} photos, {len(dataset.classes)} classes, {device}, {last_step} steps of {args.batch_size}")

    step, since, begin = 0, 0, time.perf_counter()
    for _ in range(epochs):
        for images, labels in loader:
            images, labels = images.to(device), labels.to(device)
            loss = functional.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

            step += 1
            if step % 20 == 0 or step == last_step:
                value, now = loss.item(), time.perf_counter()
                rate = (step - since) * args.batch_size / (now - begin)
                print(f"step {step:5d}  loss {value:.3f}  {rate:7.1f} images/s", flush=True)
                since, begin = step, now
            if step == last_step:
                return


if __name__ == "__main__":
    main()
