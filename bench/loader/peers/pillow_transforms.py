"""torchvision's classic transforms: its own if it is installed, else the same operations on Pillow and torch.

The latter are what torchvision does for a Pillow image: crop, resize (BILINEAR, which antialiases), transpose,
ToTensor, Normalize.
"""

from __future__ import annotations

import math
import random

import torch
from contender import MEAN, SIDE, STD
from PIL import Image

try:
    from torchvision import transforms as tv
except (ImportError, RuntimeError):  # absent, or built for another torch
    tv = None


class Plain:
    def __init__(self, check: bool):
        self.check = check
        self.mean = torch.tensor(MEAN).view(3, 1, 1)
        self.std = torch.tensor(STD).view(3, 1, 1)

    @staticmethod
    def random_box(width: int, height: int) -> tuple[int, int, int, int]:
        for _ in range(10):
            area = width * height * random.uniform(0.08, 1)
            ratio = math.exp(random.uniform(math.log(3 / 4), math.log(4 / 3)))
            w, h = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
            if 0 < w <= width and 0 < h <= height:
                x, y = random.randint(0, width - w), random.randint(0, height - h)
                return x, y, x + w, y + h
        return 0, 0, width, height

    def __call__(self, image: Image.Image) -> torch.Tensor:
        if not self.check:
            image = image.crop(self.random_box(*image.size))
        image = image.resize((SIDE, SIDE), Image.BILINEAR)
        if not self.check and random.random() < 0.5:
            image = image.transpose(Image.FLIP_LEFT_RIGHT)
        raw = torch.frombuffer(bytearray(image.tobytes()), dtype=torch.uint8).view(SIDE, SIDE, 3)
        pixels = raw.permute(2, 0, 1).contiguous().to(torch.float32).div_(255)
        return pixels.sub_(self.mean).div_(self.std)


def make(check: bool):
    if tv is None:
        return Plain(check)
    geometry = [tv.Resize((SIDE, SIDE))] if check else [tv.RandomResizedCrop(SIDE), tv.RandomHorizontalFlip()]
    return tv.Compose([*geometry, tv.ToTensor(), tv.Normalize(MEAN, STD)])
