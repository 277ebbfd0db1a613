"""DALI on the CPU: reads, decodes the random crop only, resizes, mirrors and normalises in its own threads."""

from __future__ import annotations

import contender
from nvidia.dali import fn, pipeline_def, types


@pipeline_def
def pipeline(options: contender.Options):
    side = contender.SIDE
    if options.kind == "image-tar":
        encoded, labels = fn.readers.webdataset(
            paths=contender.shards(options.data), ext=["jpg", "cls"], random_shuffle=True, name="reader"
        )
    else:
        encoded, labels = fn.readers.file(
            files=[str(path) for path in contender.files(options.data, options.kind)],
            random_shuffle=not options.check,
            name="reader",
        )
    if options.check:
        images = fn.decoders.image(encoded, device="cpu")
        mirror = 0
    else:
        images = fn.decoders.image_random_crop(
            encoded, device="cpu", random_area=[0.08, 1.0], random_aspect_ratio=[3 / 4, 4 / 3]
        )
        mirror = fn.random.coin_flip()
    images = fn.resize(images, resize_x=side, resize_y=side, interp_type=types.INTERP_LINEAR, antialias=True)
    images = fn.crop_mirror_normalize(
        images,
        mirror=mirror,
        mean=[255 * value for value in contender.MEAN],
        std=[255 * value for value in contender.STD],
        dtype=types.FLOAT,
        output_layout="CHW",
    )
    return images, labels


class Loader:
    def __init__(self, options: contender.Options):
        self.pipe = pipeline(options, batch_size=contender.BATCH, num_threads=options.threads, device_id=None, seed=1)
        self.pipe.build()

    def __iter__(self):
        while True:
            images, labels = self.pipe.run()
            yield images.as_array(), labels


if __name__ == "__main__":
    contender.run(Loader)
