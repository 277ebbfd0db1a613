"""FFCV: its own file format (written beside the data, JPEG at the same quality), its compiled pipeline.

Its resize is OpenCV's INTER_AREA, not the antialiased triangle filter of the others: the output differs slightly.
"""

from __future__ import annotations

import random

import contender
import numpy as np
from ffcv.fields import IntField, RGBImageField
from ffcv.fields.decoders import CenterCropRGBImageDecoder, IntDecoder, RandomResizedCropRGBImageDecoder
from ffcv.loader import Loader, OrderOption
from ffcv.transforms import NormalizeImage, RandomHorizontalFlip, ToTensor, ToTorchImage
from ffcv.writer import DatasetWriter
from PIL import Image


class Pictures:
    def __init__(self, paths):
        self.paths, self.labels = paths, contender.label_of(paths)

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int):
        path = self.paths[index]
        return np.asarray(Image.open(path).convert("RGB")), self.labels[path.parent.name]


def written(options: contender.Options):
    beton = options.data.with_suffix(".beton")
    if not beton.exists():
        unfinished = beton.with_suffix(".part")
        fields = {"image": RGBImageField(write_mode="jpg", jpeg_quality=90), "label": IntField()}
        writer = DatasetWriter(str(unfinished), fields, num_workers=2)
        writer.from_indexed_dataset(Pictures(contender.files(options.data, options.kind)))
        unfinished.rename(beton)
    return beton


def open_loader(options: contender.Options):
    beton = written(options)
    random.seed(1)
    size = (contender.SIDE, contender.SIDE)
    scale = np.array([255.0], dtype=np.float32)
    normalize = NormalizeImage(np.array(contender.MEAN) * scale, np.array(contender.STD) * scale, np.float32)
    decode = CenterCropRGBImageDecoder(size, 1) if options.check else RandomResizedCropRGBImageDecoder(size)
    mirror = [] if options.check else [RandomHorizontalFlip()]
    return Loader(
        str(beton),
        batch_size=contender.BATCH,
        num_workers=options.threads,
        order=OrderOption.SEQUENTIAL if options.check else OrderOption.RANDOM,
        drop_last=False,
        pipelines={
            "image": [decode, *mirror, normalize, ToTensor(), ToTorchImage()],
            "label": [IntDecoder(), ToTensor()],
        },
    )


if __name__ == "__main__":
    contender.run(open_loader)
