"""Checks that a translated loader gives the original's pixels and labels, before it replaces the original.

Two loaders draw different random crops, so their batches cannot be compared pixel by pixel. Everything but the draws
can be compared. For a few samples, spread evenly over the dataset, this compares the original's image function and
transforms with ours, each without its random transforms (a random resized crop becomes a resize of the whole image to
the same size). That covers files and their order, labels, decoding, resampling, channel order, scaling, normalisation,
shape and type. The ranges of the draws are carried over by value.
"""

from __future__ import annotations

import importlib
from typing import Any

from . import transforms as ours
from .errors import NotTranslatable
from .sources import FileList
from .translate import Translation

SAMPLES = 8
# In units of 1/255. Decoders and resamplers round differently: below 1 on average (docs/loader.md). Swapped
# channels, a forgotten normalisation or a different filter give tens.
MEAN_TOLERANCE = 2.0


def compare(found: Translation, **options: Any) -> str:
    """Returns one line on what was compared; raises NotTranslatable if they differ."""
    spread = max(1, len(found.samples) // SAMPLES)
    samples = found.samples[::spread][:SAMPLES]
    theirs, mine = fixed(found)
    try:
        expected = [apply(theirs, found.read(path)) for path, _ in samples]
    except Exception as error:  # the original fails on it, too; which samples we take is arbitrary
        raise NotTranslatable([f"the original cannot make its samples: {type(error).__name__}: {error}"]) from None
    shapes = {tuple(image.shape) for image in expected}
    if len(shapes) != 1:
        raise NotTranslatable(["the transforms give images of different sizes: add a crop, or Resize((height, width))"])
    fixed_options = {**found.options, **options, "shuffle": False, "batch_size": len(samples), "drop_last": False}
    fixed_options.update(rank=0, world_size=1, on_bad_sample="raise")
    with FileList(samples, mine, **fixed_options) as loader:
        images, labels = next(iter(loader))
    return judge(expected, [label for _, label in samples], images, labels, found)


def judge(expected: list[Any], expected_labels: list[int], images: Any, labels: Any, found: Translation) -> str:
    import torch

    wanted = torch.stack(expected)
    if tuple(wanted.shape) != tuple(images.shape):
        raise NotTranslatable([f"images came out as {tuple(images.shape)}, the original's as {tuple(wanted.shape)}"])
    if wanted.dtype != images.dtype:
        raise NotTranslatable([f"images came out as {images.dtype}, the original's as {wanted.dtype}"])
    if labels.tolist() != expected_labels:
        raise NotTranslatable([f"labels came out as {labels.tolist()}, the original's as {expected_labels}"])
    difference = (wanted.double() - images.double()).abs() * levels(found, wanted)
    mean, largest = float(difference.mean()), float(difference.max())
    if not mean <= MEAN_TOLERANCE:
        raise NotTranslatable(
            [f"pixels differ by {mean:.1f}/255 on average (at most {largest:.0f}/255), more than {MEAN_TOLERANCE:g}"]
        )
    return f"{len(expected)} samples compared: same labels, pixels differ by {mean:.2f}/255 on average"


def levels(found: Translation, images: Any) -> Any:
    """The factor from a difference of values to one of 8-bit levels."""
    import torch

    if not images.is_floating_point():
        return 1.0
    for step in found.transforms():
        if isinstance(step, ours.Normalize):
            return 255.0 * torch.tensor(step.describe()["std"], dtype=torch.float64).view(1, -1, 1, 1)
    return 255.0


def fixed(found: Translation) -> tuple[list[Any], list[ours.Transform]]:
    """Both lists of transforms, without the random ones."""
    theirs: list[Any] = []
    mine: list[ours.Transform] = []
    for original, made in found.steps:
        if made is not None and made.random:
            if not isinstance(made, ours.RandomResizedCrop):
                continue
            about = made.describe()
            size = [about["height"], about["width"]]
            made = ours.Resize(size, about["interpolation"])
            original = resize_like(original, size)
        theirs.append(original)
        if made is not None:
            mine.append(made)
    return theirs, mine


def resize_like(original: Any, size: list[int]) -> Any:
    """torchvision's own Resize, of the same generation (v1 or v2) as the original."""
    is_v2 = type(original).__module__.startswith("torchvision.transforms.v2")
    module = importlib.import_module("torchvision.transforms.v2" if is_v2 else "torchvision.transforms")
    options = {"antialias": True} if getattr(original, "antialias", None) is True else {}
    return module.Resize(size, interpolation=original.interpolation, **options)


def apply(steps: list[Any], image: Any) -> Any:
    for step in steps:
        image = step(image)
    return image
