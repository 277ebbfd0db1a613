"""A training on torchvision's ImageFolder as many begin: one worker, and a network that could take far more images than
it gets. It knows nothing of fullbore.

    training.py PHOTOS SECONDS CLOCK [--workers 1] [--batch-size 32] [--size 224]

Writes to CLOCK the images per second of the second half of its time.
"""

import argparse
import time

import torch
from torch import nn
from torch.utils.data import DataLoader
from torchvision import datasets, transforms

parser = argparse.ArgumentParser()
parser.add_argument("photos")
parser.add_argument("seconds", type=float)
parser.add_argument("clock")
parser.add_argument("--workers", type=int, default=1)
parser.add_argument("--batch-size", type=int, default=32)
parser.add_argument("--size", type=int, default=224)
args = parser.parse_args()

torch.manual_seed(0)
dataset = datasets.ImageFolder(
    args.photos,
    transforms.Compose(
        [
            transforms.RandomResizedCrop(args.size),
            transforms.RandomHorizontalFlip(),
            transforms.ToTensor(),
            transforms.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]),
        ]
    ),
)
loader = DataLoader(
    dataset,
    batch_size=args.batch_size,
    shuffle=True,
    num_workers=args.workers,
    persistent_workers=True,
    drop_last=True,
)
model = nn.Sequential(nn.AvgPool2d(16), nn.Flatten(), nn.Linear(3 * (args.size // 16) ** 2, len(dataset.classes)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

begin = time.perf_counter()
half, images = 0.0, 0
while time.perf_counter() - begin < args.seconds:
    for pictures, labels in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(pictures), labels).backward()
        optimizer.step()
        now = time.perf_counter()
        if half:
            images += len(labels)
        elif now - begin > args.seconds / 2:
            half = now
        if now - begin > args.seconds:
            break
with open(args.clock, "w") as file:
    file.write(f"{images / (time.perf_counter() - half):.2f}\n")
