"""webdataset: tar shards read in sequence, shuffled in a buffer, Pillow transforms, torch's DataLoader around it."""

from __future__ import annotations

import io

import contender
import pillow_transforms
import torch
import webdataset as wds
from PIL import Image


def open_loader(options: contender.Options):
    torch.set_num_threads(options.threads)
    text = options.kind == "text-tar"
    transform = pillow_transforms.make(options.check)

    def decode(sample):
        content, label = sample
        value = content.decode() if text else transform(Image.open(io.BytesIO(content)).convert("RGB"))
        return value, int(label)

    data = wds.WebDataset(contender.shards(options.data), shardshuffle=False if options.check else 100)
    if not options.check:
        data = data.shuffle(250)
    data = data.to_tuple("txt" if text else "jpg", "cls").map(decode).batched(contender.BATCH)
    return torch.utils.data.DataLoader(
        data, batch_size=None, num_workers=options.workers, persistent_workers=options.workers > 0
    )


if __name__ == "__main__":
    contender.run(open_loader)
