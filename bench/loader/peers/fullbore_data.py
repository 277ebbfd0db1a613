"""fullbore.data, our loader's Python API."""

from __future__ import annotations

import sys

import contender
from fullbore.data import ImageFolder, WebDataset, transforms

if "--numpy" not in sys.argv:
    import torch  # noqa: F401  # handed out as tensors; its import is not the loader's start


def open_loader(options: contender.Options):
    side = contender.SIDE
    geometry = (
        [transforms.Resize((side, side))]
        if options.check
        else [transforms.RandomResizedCrop(side), transforms.RandomHorizontalFlip()]
    )
    common = {"batch_size": contender.BATCH, "shuffle": not options.check, "seed": 1, "threads": options.threads}
    common["as_numpy"] = options.numpy
    if options.kind == "text-tar":
        return WebDataset(f"{options.data}/*.tar", fields=["txt", "cls"], **common)
    steps = [*geometry, transforms.Normalize()]
    if options.kind == "image-tar":
        return WebDataset(f"{options.data}/*.tar", fields=["jpg", "cls"], transforms=steps, **common)
    return ImageFolder(str(options.data), transforms=steps, **common)


if __name__ == "__main__":
    contender.run(open_loader)
