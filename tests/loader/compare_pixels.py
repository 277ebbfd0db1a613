"""Compares the loader's rows with torchvision's on Pillow images, with the parameters that the loader drew.

`compare_pixels.py APPLY_PLAN DIRECTORY` prints one JSON line per case: mean and largest difference in steps of
1/255, over all values of all samples, and the largest mean of a single sample. Needs torchvision and Pillow.
"""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys
from typing import Any

import numpy
import torch
import torchvision.transforms.functional as F
from PIL import Image, ImageOps
from pixel_cases import CASES, write_images
from torchvision.transforms import InterpolationMode

MODES = {
    "nearest": InterpolationMode.NEAREST,
    "bilinear": InterpolationMode.BILINEAR,
    "bicubic": InterpolationMode.BICUBIC,
}
MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


def resized(image: Image.Image, transform: dict[str, Any], drawn: dict[str, Any]) -> Image.Image:
    size = [transform["height"], transform["width"]] if transform.get("width") else [transform["height"]]
    mode = MODES[transform.get("interpolation", "bilinear")]
    return F.resize(image, size, mode, max_size=transform.get("max_size"))


def resized_crop(image: Image.Image, transform: dict[str, Any], drawn: dict[str, Any]) -> Image.Image:
    x, y, width, height = drawn["box"]
    size = [transform["height"], transform["width"]]
    return F.resized_crop(image, y, x, height, width, size, MODES[transform.get("interpolation", "bilinear")])


def jittered(image: Image.Image, transform: dict[str, Any], drawn: dict[str, Any]) -> Image.Image:
    for step, factor in drawn["steps"]:
        image = getattr(F, f"adjust_{step}")(image, factor)
    return image


def rotated(image: Image.Image, transform: dict[str, Any], drawn: dict[str, Any]) -> Image.Image:
    fill = transform["fill"] if image.mode == "RGB" else transform["fill"][:1]
    return F.rotate(image, drawn["degrees"], MODES[transform.get("interpolation", "nearest")], fill=fill)


BY_NAME = {
    "Resize": resized,
    "CenterCrop": lambda image, transform, drawn: F.center_crop(image, [transform["height"], transform["width"]]),
    "RandomResizedCrop": resized_crop,
    "RandomHorizontalFlip": lambda image, transform, drawn: F.hflip(image) if drawn["flips"] else image,
    "ColorJitter": jittered,
    "RandomRotation": rotated,
    "Normalize": lambda image, transform, drawn: F.normalize(F.to_tensor(image), MEAN, STD),
}


def reference(path: pathlib.Path, transforms: list, drawn: list, options: dict[str, Any]) -> numpy.ndarray:
    image = Image.open(path)
    if options.get("apply_exif_orientation"):
        image = ImageOps.exif_transpose(image)
    image = image.convert("L" if options.get("image_mode") == "gray" else "RGB")
    for transform, parameters in zip(transforms, drawn):
        image = BY_NAME[transform["name"]](image, transform, parameters)
    if isinstance(image, torch.Tensor):
        return image.numpy().transpose(1, 2, 0)
    array = numpy.asarray(image)
    return array if array.ndim == 3 else array[:, :, None]


class Plans:
    """The loader's side: one process for all jobs."""

    def __init__(self, binary: str, directory: pathlib.Path) -> None:
        self.out = directory / "row"
        self.process = subprocess.Popen([binary], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def run(self, path: pathlib.Path, transforms: list, options: dict[str, Any], sample: int):
        options = {"dtype": "uint8", "layout": "nhwc", **options}
        options["layout"] = "nchw" if options["dtype"] == "float32" and "layout" not in options else "nhwc"
        job = {"image": str(path), "out": str(self.out), "sample": sample,
               "options": {**options, "transforms": transforms}}  # fmt: skip
        self.process.stdin.write(json.dumps(job) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        if "error" in answer:
            raise RuntimeError(f"{path.name} {transforms}: {answer['error']}")
        row = numpy.fromfile(self.out, options["dtype"]).reshape(answer["shape"])
        return (row if options["layout"] == "nhwc" else row.transpose(1, 2, 0)), answer["drawn"]


def steps_between(ours: numpy.ndarray, theirs: numpy.ndarray) -> numpy.ndarray:
    """Absolute differences in steps of 1/255, before any normalisation."""
    assert ours.shape == theirs.shape, (ours.shape, theirs.shape)
    if ours.dtype == numpy.float32:
        return numpy.abs(ours - theirs) * numpy.array(STD, numpy.float32) * 255
    return numpy.abs(ours.astype(numpy.int16) - theirs)


def main(binary: str, directory: pathlib.Path) -> None:
    write_images(directory)
    plans = Plans(binary, directory)
    for name, transforms, images, samples, options in CASES:
        total, count, largest, worst = 0.0, 0, 0.0, 0.0
        for image in images:
            for sample in range(samples):
                path = directory / f"{image}.jpg"
                ours, drawn = plans.run(path, transforms, options, sample)
                steps = steps_between(ours, reference(path, transforms, drawn, options))
                total, count = total + float(steps.sum()), count + steps.size
                largest, worst = max(largest, float(steps.max())), max(worst, float(steps.mean()))
        print(json.dumps({"case": name, "samples": len(images) * samples, "mean": total / count,
                          "worst_mean": worst, "largest": largest}), flush=True)  # fmt: skip


if __name__ == "__main__":
    main(sys.argv[1], pathlib.Path(sys.argv[2]))
