"""fullbore's loader instead of a DataLoader: python fast_loader.py PHOTOS, a directory of class directories.

PYTHONPATH=build/release/python python examples/fast_loader.py photos/train
"""

import sys
import time

from fullbore.data import ImageFolder, transforms


def train_step(images, labels) -> int:
    """Your training step goes here."""
    assert images.shape[0] == labels.shape[0]
    return len(labels)


def main() -> None:
    if len(sys.argv) != 2:
        raise SystemExit(f"usage: {sys.argv[0]} DIRECTORY")
    train = ImageFolder(
        sys.argv[1],
        transforms=[transforms.RandomResizedCrop(224), transforms.RandomHorizontalFlip(), transforms.Normalize()],
        batch_size=64,
        seed=0,
    )
    print(f"{train.samples} images of {len(train.classes)} classes, {len(train)} batches")
    for epoch in range(2):
        begin, rows = time.perf_counter(), 0
        for images, labels in train:
            rows += train_step(images, labels)
        print(f"epoch {epoch}: {rows / (time.perf_counter() - begin):,.0f} images/s")
    for stage in train.stats()["stages"]:
        print(f"  {stage['name']:10} {stage['busy_ns'] / max(stage['samples'], 1) / 1e6:6.2f} ms a sample")


if __name__ == "__main__":
    main()
