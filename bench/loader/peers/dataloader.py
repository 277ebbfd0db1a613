"""torch's DataLoader with Pillow and torchvision's transforms, the usual way. --workers 0, 1, 2."""

from __future__ import annotations

from pathlib import Path

import contender
import pillow_transforms
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset


class Images(Dataset):
    def __init__(self, paths: list[Path], check: bool):
        labels = contender.label_of(paths)
        self.samples = [(str(path), labels[path.parent.name]) for path in paths]
        self.transform = pillow_transforms.make(check)

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        path, label = self.samples[index]
        with open(path, "rb") as file:
            return self.transform(Image.open(file).convert("RGB")), label


class Texts(Images):
    def __getitem__(self, index: int) -> tuple[str, int]:
        path, label = self.samples[index]
        return Path(path).read_text(), label


def open_loader(options: contender.Options) -> DataLoader:
    paths = contender.files(options.data, options.kind)
    dataset = (Texts if options.kind == "text" else Images)(paths, options.check)
    torch.set_num_threads(options.threads)
    return DataLoader(
        dataset,
        batch_size=contender.BATCH,
        shuffle=not options.check,
        num_workers=options.workers,
        persistent_workers=options.workers > 0,
    )


if __name__ == "__main__":
    contender.run(open_loader)
