"""SPDL: its thread pipeline, FFmpeg's decoder and filters (crop, scale, mirror), the batch normalised with torch."""

from __future__ import annotations

import random
from pathlib import Path

import contender
import spdl.io
import torch
from pillow_transforms import Plain
from spdl.pipeline import PipelineBuilder

MEAN = torch.tensor([255 * value for value in contender.MEAN])
STD = torch.tensor([255 * value for value in contender.STD])


class Loader:
    def __init__(self, options: contender.Options):
        self.options = options
        paths = contender.files(options.data, options.kind)
        labels = contender.label_of(paths)
        self.samples = [(str(path), labels[path.parent.name]) for path in paths]

    def filters(self, width: int, height: int) -> str:
        side = contender.SIDE
        steps = [f"scale={side}:{side}:flags=bilinear"]
        if not self.options.check:
            left, top, right, bottom = Plain.random_box(width, height)
            steps.insert(0, f"crop={right - left}:{bottom - top}:{left}:{top}:exact=1")
            if random.random() < 0.5:
                steps.append("hflip")
        return ",".join([*steps, "format=pix_fmts=rgb24"])

    def load(self, sample: tuple[str, int]):
        path, label = sample
        packets = spdl.io.demux_image(Path(path).read_bytes())
        codec = packets.codec
        return spdl.io.decode_packets(packets, filter_desc=self.filters(codec.width, codec.height)), label

    def collate(self, items):
        pixels = spdl.io.to_torch(spdl.io.convert_frames([frames for frames, _ in items]))
        images = ((pixels.to(torch.float32) - MEAN) / STD).permute(0, 3, 1, 2).contiguous()
        return images, torch.tensor([label for _, label in items])

    def __iter__(self):
        order = list(self.samples)
        if not self.options.check:
            random.shuffle(order)
        kept = "input" if self.options.check else "completion"
        pipeline = (
            PipelineBuilder()
            .add_source(order)
            .pipe(self.load, concurrency=self.options.threads, output_order=kept)
            .aggregate(contender.BATCH)
            .pipe(self.collate, concurrency=1)
            .add_sink(3)
            .build(num_threads=self.options.threads)
        )
        with pipeline.auto_stop():
            yield from pipeline


def open_loader(options: contender.Options) -> Loader:
    torch.set_num_threads(options.threads)
    return Loader(options)


if __name__ == "__main__":
    contender.run(open_loader)
