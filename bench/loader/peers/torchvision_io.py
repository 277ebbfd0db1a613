"""torch's DataLoader with torchvision.io: decode to a tensor, transforms on tensors with antialiasing."""

from __future__ import annotations

import contender
import torch
from dataloader import Images
from torch.utils.data import DataLoader
from torchvision import transforms as tv
from torchvision.io import ImageReadMode, decode_jpeg, read_file


class Decoded(Images):
    def __init__(self, paths, check: bool):
        super().__init__(paths, check)
        side = contender.SIDE
        geometry = (
            [tv.Resize((side, side), antialias=True)]
            if check
            else [tv.RandomResizedCrop(side, antialias=True), tv.RandomHorizontalFlip()]
        )
        self.transform = tv.Compose(
            [*geometry, tv.ConvertImageDtype(torch.float32), tv.Normalize(contender.MEAN, contender.STD)]
        )

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        path, label = self.samples[index]
        return self.transform(decode_jpeg(read_file(path), ImageReadMode.RGB)), label


def open_loader(options: contender.Options) -> DataLoader:
    paths = contender.files(options.data, options.kind)
    torch.set_num_threads(options.threads)
    return DataLoader(
        Decoded(paths, options.check),
        batch_size=contender.BATCH,
        shuffle=not options.check,
        num_workers=options.workers,
        persistent_workers=options.workers > 0,
    )


if __name__ == "__main__":
    contender.run(open_loader)
