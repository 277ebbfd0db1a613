"""What is compared: images made to be difficult, and lists of transforms.

Run with a Python that has Pillow and NumPy: `python pixel_cases.py DIRECTORY` writes the images.
"""

from __future__ import annotations

import pathlib
import sys
from typing import Any

RRC = {"name": "RandomResizedCrop", "height": 224, "width": 224}
FLIP = {"name": "RandomHorizontalFlip"}
NORMALIZE = {"name": "Normalize"}
JITTER = {"name": "ColorJitter", "brightness": [0.6, 1.4], "contrast": [0.6, 1.4], "saturation": [0.6, 1.4]}
HUE = {"name": "ColorJitter", "hue": [-0.1, 0.1]}

SMALL = ("photo", "portrait", "odd", "gray", "lossless", "dot", "speck", "wide", "tall", "turned6", "turned7")
LARGE = ("large", "large_fine")


def resize(height: int, width: int = 0, **more: Any) -> dict[str, Any]:
    return {"name": "Resize", "height": height, "width": width, **more}


def crop(height: int, width: int) -> dict[str, Any]:
    return {"name": "CenterCrop", "height": height, "width": width}


def rotation(**more: Any) -> dict[str, Any]:
    return {"name": "RandomRotation", "degrees": [-40, 40], "fill": [10, 120, 250], **more}


# name, transforms, images, samples of each, options
Case = tuple[str, list[dict[str, Any]], tuple[str, ...], int, dict[str, Any]]
FULL = {"scaled_decode": False}
CASES: list[Case] = [
    ("no transform", [], SMALL, 1, FULL),
    ("Resize(256)", [resize(256)], SMALL, 1, FULL),
    ("Resize(256, bicubic)", [resize(256, interpolation="bicubic")], SMALL, 1, FULL),
    ("Resize(256, nearest)", [resize(256, interpolation="nearest")], SMALL, 1, FULL),
    ("Resize((65, 301))", [resize(65, 301)], SMALL, 1, FULL),
    ("Resize((700, 900), bicubic)", [resize(700, 900, interpolation="bicubic")], ("photo", "odd"), 1, FULL),
    ("Resize(256, max_size=300)", [resize(256, max_size=300)], SMALL, 1, FULL),
    ("Resize(256), 2000x1500", [resize(256)], LARGE, 1, FULL),
    ("Resize(256), 2000x1500, scaled", [resize(256)], LARGE, 1, {}),
    ("CenterCrop(224)", [crop(224, 224)], SMALL, 1, FULL),
    ("CenterCrop((401, 90))", [crop(401, 90)], SMALL, 1, FULL),
    ("Resize(256), CenterCrop(224)", [resize(256), crop(224, 224)], SMALL, 1, FULL),
    ("Resize(100), CenterCrop(224)", [resize(100), crop(224, 224)], SMALL, 1, FULL),
    ("RandomResizedCrop(224)", [RRC], SMALL, 4, FULL),
    ("RandomResizedCrop(224, bicubic)", [{**RRC, "interpolation": "bicubic"}], SMALL, 3, FULL),
    ("RandomResizedCrop(224, nearest)", [{**RRC, "interpolation": "nearest"}], SMALL, 3, FULL),
    ("RandomResizedCrop((31, 77))", [{**RRC, "height": 31, "width": 77}], SMALL, 3, FULL),
    ("RandomResizedCrop(224), scaled", [RRC], SMALL, 3, {}),
    ("RandomResizedCrop(224), 2000x1500", [RRC], LARGE, 4, FULL),
    ("RandomResizedCrop(224), 2000x1500, scaled", [RRC], LARGE, 4, {}),
    ("RandomHorizontalFlip(1)", [{**FLIP, "p": 1}], SMALL, 1, FULL),
    ("RandomResizedCrop, RandomHorizontalFlip", [RRC, FLIP], SMALL, 4, FULL),
    ("RandomHorizontalFlip, RandomResizedCrop", [FLIP, RRC], SMALL, 4, FULL),
    ("the same, nearest", [{**RRC, "interpolation": "nearest"}, FLIP], SMALL, 4, FULL),
    ("ColorJitter(.4, .4, .4)", [JITTER], SMALL, 3, FULL),
    ("ColorJitter(hue=.1)", [HUE], SMALL, 3, FULL),
    (
        "ColorJitter(1, 1, 1, .5)",
        [{"name": "ColorJitter", "brightness": [0, 2], "contrast": [0, 2], "saturation": [0, 2], "hue": [-0.5, 0.5]}],
        SMALL,
        4,
        FULL,
    ),
    ("RandomRotation(40)", [rotation()], SMALL, 3, FULL),
    ("RandomRotation(40, bilinear)", [rotation(interpolation="bilinear")], SMALL, 3, FULL),
    ("RandomRotation(40, bicubic)", [rotation(interpolation="bicubic")], SMALL, 3, FULL),
    ("RandomRotation((90, 90))", [rotation(degrees=[90, 90])], SMALL, 1, FULL),
    ("Normalize", [crop(224, 224), NORMALIZE], SMALL, 1, {**FULL, "dtype": "float32"}),
    (
        "Normalize, channels last",
        [crop(91, 50), NORMALIZE],
        SMALL,
        1,
        {**FULL, "dtype": "float32", "layout": "nhwc"},
    ),
    ("Resize(300), RandomResizedCrop(128)", [resize(300), {**RRC, "height": 128, "width": 128}], SMALL, 3, FULL),
    ("Resize(96), Resize((50, 70)), CenterCrop(60)", [resize(96), resize(50, 70), crop(60, 60)], SMALL, 1, FULL),
    (
        "everything",
        [RRC, FLIP, JITTER, HUE, rotation(), crop(200, 240), NORMALIZE],
        SMALL,
        4,
        {**FULL, "dtype": "float32"},
    ),
    ("RandomResizedCrop(224), gray", [RRC, FLIP], SMALL, 3, {**FULL, "image_mode": "gray"}),
    (
        "RandomResizedCrop(224), upright",
        [RRC, FLIP],
        ("turned6", "turned7", "photo"),
        4,
        {**FULL, "apply_exif_orientation": True},
    ),
    (
        "RandomResizedCrop(224), upright, scaled",
        [{**RRC, "height": 50, "width": 40}],
        ("turned6", "turned7"),
        4,
        {"apply_exif_orientation": True},
    ),
]


def photo(width: int, height: int, seed: int, fine: float = 0.0):
    """Noise of all scales, the coarse ones strongest, as in photographs; some hard edges; `fine` adds grain."""
    import numpy
    from PIL import Image

    random = numpy.random.default_rng(seed)
    total = numpy.zeros((height, width, 3), numpy.float32)
    side = 2
    while side < 2 * max(width, height):
        cells = (max(1, side * height // max(width, height)), max(1, side * width // max(width, height)))
        octave = random.normal(size=(*cells, 3)).astype(numpy.float32) * 90 / side**0.8
        for c in range(3):
            layer = Image.fromarray(octave[:, :, c]).resize((width, height), Image.BICUBIC)
            total[:, :, c] += numpy.asarray(layer)
        side *= 2
    y, x = numpy.mgrid[0:height, 0:width]
    for _ in range(12):
        cx, cy, r = random.uniform(0, width), random.uniform(0, height), random.uniform(2, min(width, height) / 4 + 3)
        total[(x - cx) ** 2 + (y - cy) ** 2 < r * r] += random.uniform(-70, 70, 3)
    total += random.normal(size=total.shape) * fine
    return Image.fromarray(numpy.clip(total + 128, 0, 255).astype(numpy.uint8))


def write_images(directory: pathlib.Path) -> None:
    from PIL import Image

    sizes = {"photo": (500, 375), "portrait": (375, 500), "odd": (333, 251), "dot": (1, 1), "speck": (3, 2),
             "wide": (1000, 13), "tall": (7, 900), "large": (2000, 1500)}  # fmt: skip
    for seed, (name, size) in enumerate(sizes.items()):
        photo(*size, seed).save(directory / f"{name}.jpg", quality=90)
    photo(2000, 1500, 20, fine=8).save(directory / "large_fine.jpg", quality=92, subsampling=0)
    photo(419, 300, 21).convert("L").save(directory / "gray.jpg", quality=90)
    photo(301, 400, 22).save(directory / "lossless.png")
    for orientation in (6, 7):
        exif = Image.Exif()
        exif[0x0112] = orientation
        photo(480, 320, 30 + orientation).save(directory / f"turned{orientation}.jpg", quality=90, exif=exif)
    (directory / "lossless.jpg").write_bytes((directory / "lossless.png").read_bytes())  # the bytes tell


if __name__ == "__main__":
    write_images(pathlib.Path(sys.argv[1]))
