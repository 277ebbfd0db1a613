"""Transforms with torchvision's names, arguments and defaults; resampling is antialiased, as Pillow's is.

They describe; the loader carries them out in C++, fused with the decoding where that is possible.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import Any, Union

from .errors import argument

Size = Union[int, Sequence[int]]
Interval = Sequence[float]
Amount = Union[float, Interval]

__all__ = [
    "CenterCrop",
    "ColorJitter",
    "Compose",
    "Normalize",
    "RandomHorizontalFlip",
    "RandomResizedCrop",
    "RandomRotation",
    "Resize",
]

INTERPOLATIONS = ("nearest", "bilinear", "bicubic")
PIL_INTERPOLATIONS = {0: "nearest", 2: "bilinear", 3: "bicubic"}  # Pillow's and older torchvisions' numbers


class Transform:
    """Base of all: knows its description for the engine, and prints as it was made."""

    random: bool  # whether it decides something anew for each sample

    def __init_subclass__(cls, *, random: bool) -> None:
        cls.random = random

    def __init__(self, **description: Any) -> None:
        self._description = description

    def describe(self) -> dict[str, Any]:
        """As src/loader/core/options_json.h defines it."""
        return {"name": type(self).__name__, **self._description}

    def __repr__(self) -> str:
        inside = ", ".join(f"{name}={value!r}" for name, value in self._description.items())
        return f"{type(self).__name__}({inside})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Transform) and self.describe() == other.describe()

    def __hash__(self) -> int:
        return hash(repr(self))


class Resize(Transform, random=False):
    """To `size` (height, width); an int is the shorter side, and the other follows.

    max_size: the longer side's limit, with an int only.
    """

    def __init__(self, size: Size, interpolation: Any = "bilinear", max_size: int | None = None) -> None:
        name = type(self).__name__
        sides = sides_of(name, size)
        height, width = sides[0], sides[1] if len(sides) == 2 else 0
        if width and max_size is not None:
            raise argument(f"{name}: max_size={max_size} needs size to be an int, not {tuple(sides)}")
        positive(name, height, width or height)
        super().__init__(
            height=height, width=width, interpolation=interpolation_name(name, interpolation), max_size=max_size or 0
        )


class CenterCrop(Transform, random=False):
    """The middle of the image, `size` (height, width) or an int for a square."""

    def __init__(self, size: Size) -> None:
        height, width = pair("CenterCrop", size)
        super().__init__(height=height, width=width)


class RandomResizedCrop(Transform, random=True):
    """A random part, `scale` of the area and of an aspect `ratio` (width / height), resized to `size`."""

    def __init__(
        self,
        size: Size,
        scale: Interval = (0.08, 1.0),
        ratio: Interval = (3.0 / 4.0, 4.0 / 3.0),
        interpolation: Any = "bilinear",
    ) -> None:
        height, width = pair("RandomResizedCrop", size)
        super().__init__(
            height=height,
            width=width,
            scale=interval("RandomResizedCrop: scale", scale, 0.0),
            ratio=interval("RandomResizedCrop: ratio", ratio, 0.0),
            interpolation=interpolation_name("RandomResizedCrop", interpolation),
        )


class RandomHorizontalFlip(Transform, random=True):
    """Left to right, with probability `p`."""

    def __init__(self, p: float = 0.5) -> None:
        if not 0.0 <= p <= 1.0:
            raise argument(f"RandomHorizontalFlip: p cannot be {p!r}", "a probability is between 0 and 1")
        super().__init__(p=float(p))


class ColorJitter(Transform, random=True):
    """Factors drawn from [1 - x, 1 + x] (hue: [-x, x], x at most 0.5), or from the interval that is given."""

    def __init__(self, brightness: Amount = 0, contrast: Amount = 0, saturation: Amount = 0, hue: Amount = 0) -> None:
        super().__init__(
            brightness=amount("ColorJitter: brightness", brightness),
            contrast=amount("ColorJitter: contrast", contrast),
            saturation=amount("ColorJitter: saturation", saturation),
            hue=amount("ColorJitter: hue", hue, center=0.0, low=-0.5, high=0.5),
        )


class RandomRotation(Transform, random=True):
    """By an angle from [-degrees, degrees], or from the interval; about the centre; the size stays.

    fill: 0 to 255, one number or three.
    """

    def __init__(self, degrees: Amount, interpolation: Any = "nearest", fill: int | Sequence[int] = 0) -> None:
        if isinstance(degrees, (int, float)):
            if degrees < 0:
                raise argument(f"RandomRotation: degrees cannot be {degrees!r}", "a single number is not negative")
            degrees = (-degrees, degrees)
        colour = [fill] * 3 if isinstance(fill, (int, float)) else list(fill)
        if len(colour) == 1:
            colour = colour * 3
        if len(colour) != 3 or not all(0 <= part <= 255 for part in colour):
            raise argument(f"RandomRotation: fill cannot be {fill!r}", "a number from 0 to 255, or three")
        super().__init__(
            degrees=interval("RandomRotation: degrees", degrees),
            interpolation=interpolation_name("RandomRotation", interpolation),
            fill=[int(part) for part in colour],
        )


class Normalize(Transform, random=False):
    """(value - mean) / std by channel, of values in [0, 1]. The defaults are ImageNet's."""

    def __init__(
        self, mean: Sequence[float] = (0.485, 0.456, 0.406), std: Sequence[float] = (0.229, 0.224, 0.225)
    ) -> None:
        super().__init__(mean=channels("Normalize: mean", mean), std=channels("Normalize: std", std))
        if not all(self._description["std"]):
            raise argument(f"Normalize: std cannot be {tuple(std)!r}", "a division by 0 has no result")


class Compose:
    """A list of transforms, for scripts that have one; a plain list does as well."""

    def __init__(self, transforms: Sequence[Transform]) -> None:
        self.transforms = list(transforms)


def flat(transforms: Any) -> list[Transform]:
    """The list of what `transforms=` was given."""
    if transforms is None:
        return []
    if isinstance(transforms, Compose):
        return flat(transforms.transforms)
    if isinstance(transforms, Transform):
        return [transforms]
    result: list[Transform] = []
    for one in transforms if isinstance(transforms, Iterable) else [transforms]:
        if isinstance(one, (Compose, list, tuple)):
            result += flat(one)
        elif isinstance(one, Transform):
            result.append(one)
        else:
            raise argument(
                f"transforms: {one!r} is none of fullbore.data.transforms",
                "a function of your own goes to map=; torchvision's lists are translated by fullbore.data.from_torch",
            )
    return result


def interpolation_name(what: str, value: Any) -> str:
    """Of a name, of torchvision's InterpolationMode or of Pillow's number."""
    name = PIL_INTERPOLATIONS.get(value, value) if isinstance(value, int) else getattr(value, "value", value)
    if name not in INTERPOLATIONS:
        raise argument(f"{what}: interpolation cannot be {value!r}", "one of: " + ", ".join(INTERPOLATIONS))
    return str(name)


def positive(what: str, *sizes: int) -> None:
    if any(size <= 0 for size in sizes):
        raise argument(f"{what}: size cannot be {sizes!r}", "pixels are counted from 1")


def pair(what: str, size: Size) -> tuple[int, int]:
    sides = sides_of(what, size)
    positive(what, *sides)
    return sides[0], sides[-1]


def sides_of(what: str, size: Size) -> list[int]:
    """One number, or two."""
    try:
        sides = [operator.index(side) for side in ([size] if isinstance(size, int) else size)]
    except TypeError:
        sides = []
    if len(sides) not in (1, 2):
        raise argument(f"{what}: size cannot be {size!r}", "an int, or (height, width)")
    return sides


def interval(what: str, value: Interval, low: float = float("-inf"), high: float = float("inf")) -> list[float]:
    if len(value) != 2 or not low <= value[0] <= value[1] <= high:
        raise argument(f"{what} cannot be {value!r}", f"an interval (low, high) within [{low}, {high}]")
    return [float(value[0]), float(value[1])]


def amount(
    what: str, value: Amount | None, center: float = 1.0, low: float = 0.0, high: float = float("inf")
) -> list[float]:
    if value is None:
        return [center, center]
    if isinstance(value, (int, float)):
        if value < 0:
            raise argument(f"{what} cannot be {value!r}", "a single number is not negative")
        value = (max(low, center - value) if center else -value, center + value)
    return interval(what, value, low, high)


def channels(what: str, value: Sequence[float]) -> list[float]:
    values = [float(part) for part in value]
    if len(values) == 1:
        values = values * 3
    if len(values) != 3:
        raise argument(f"{what} cannot be {tuple(value)!r}", "one number for each of three channels")
    return values
