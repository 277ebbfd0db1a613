"""Transforms with torchvision's names, arguments and defaults; resampling is antialiased, as in Pillow.

These classes only describe. The loader runs the transforms in C++, fused with decoding where possible.
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
PIL_INTERPOLATIONS = {0: "nearest", 2: "bilinear", 3: "bicubic"}  # numbers of Pillow and of older torchvision versions


class Transform:
    """Base class: keeps the description for the engine, and prints as it was constructed."""

    random: bool  # whether it draws something at random for each sample

    def __init_subclass__(cls, *, random: bool) -> None:
        cls.random = random

    def __init__(self, **description: Any) -> None:
        self._description = description

    def describe(self) -> dict[str, Any]:
        """As src/loader/core/options/options_json.h defines it."""
        return {"name": type(self).__name__, **self._description}

    def __repr__(self) -> str:
        inside = ", ".join(f"{name}={value!r}" for name, value in self._description.items())
        return f"{type(self).__name__}({inside})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Transform) and self.describe() == other.describe()

    def __hash__(self) -> int:
        return hash(repr(self))


class Resize(Transform, random=False):
    """To `size` (height, width); an int is the shorter side, and the other keeps the aspect ratio.

    max_size: limit of the longer side, only if `size` is an int.
    """

    def __init__(self, size: Size, interpolation: Any = "bilinear", max_size: int | None = None) -> None:
        name = type(self).__name__
        sides = sides_of(name, size)
        height, width = sides[0], sides[1] if len(sides) == 2 else 0
        if width and max_size is not None:
            raise argument(f"{name}: max_size={max_size} requires size to be an int, not {tuple(sides)}")
        positive(name, height, width or height)
        super().__init__(
            height=height, width=width, interpolation=interpolation_name(name, interpolation), max_size=max_size or 0
        )


class CenterCrop(Transform, random=False):
    """The centre of the image: `size` (height, width), or an int for a square."""

    def __init__(self, size: Size) -> None:
        height, width = pair("CenterCrop", size)
        super().__init__(height=height, width=width)


class RandomResizedCrop(Transform, random=True):
    """A random crop with `scale` of the area and aspect `ratio` (width / height), resized to `size`."""

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
    """Mirrors left to right, with probability `p`."""

    def __init__(self, p: float = 0.5) -> None:
        if not 0.0 <= p <= 1.0:
            raise argument(f"RandomHorizontalFlip: p cannot be {p!r}", "a probability is between 0 and 1")
        super().__init__(p=float(p))


class ColorJitter(Transform, random=True):
    """Factors drawn from [1 - x, 1 + x] (hue: [-x, x], x at most 0.5), or from the given interval."""

    def __init__(self, brightness: Amount = 0, contrast: Amount = 0, saturation: Amount = 0, hue: Amount = 0) -> None:
        super().__init__(
            brightness=amount("ColorJitter: brightness", brightness),
            contrast=amount("ColorJitter: contrast", contrast),
            saturation=amount("ColorJitter: saturation", saturation),
            hue=amount("ColorJitter: hue", hue, center=0.0, low=-0.5, high=0.5),
        )


class RandomRotation(Transform, random=True):
    """Rotates about the centre by an angle from [-degrees, degrees] or the given interval, and keeps the size.

    fill: one number or three, from 0 to 255.
    """

    def __init__(self, degrees: Amount, interpolation: Any = "nearest", fill: int | Sequence[int] = 0) -> None:
        if isinstance(degrees, (int, float)):
            if degrees < 0:
                raise argument(f"RandomRotation: degrees cannot be {degrees!r}", "a single number must not be negative")
            degrees = (-degrees, degrees)
        colour = [fill] * 3 if isinstance(fill, (int, float)) else list(fill)
        if len(colour) == 1:
            colour = colour * 3
        if len(colour) != 3 or not all(0 <= part <= 255 for part in colour):
            raise argument(f"RandomRotation: fill cannot be {fill!r}", "give one number from 0 to 255, or three")
        super().__init__(
            degrees=interval("RandomRotation: degrees", degrees),
            interpolation=interpolation_name("RandomRotation", interpolation),
            fill=[int(part) for part in colour],
        )


class Normalize(Transform, random=False):
    """(value - mean) / std per channel, for values in [0, 1]. The defaults are ImageNet's."""

    def __init__(
        self, mean: Sequence[float] = (0.485, 0.456, 0.406), std: Sequence[float] = (0.229, 0.224, 0.225)
    ) -> None:
        super().__init__(mean=channels("Normalize: mean", mean), std=channels("Normalize: std", std))
        if not all(self._description["std"]):
            raise argument(f"Normalize: std cannot be {tuple(std)!r}", "it would divide by 0")


class Compose:
    """A list of transforms, for scripts that use Compose; a plain list works just as well."""

    def __init__(self, transforms: Sequence[Transform]) -> None:
        self.transforms = list(transforms)


def flat(transforms: Any) -> list[Transform]:
    """The value of `transforms=` as a flat list."""
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
                f"transforms: {one!r} is not one of fullbore.data.transforms",
                "pass your own function as map=; fullbore.data.from_torch translates torchvision's transforms",
            )
    return result


def interpolation_name(what: str, value: Any) -> str:
    """The name of a name, of torchvision's InterpolationMode or of Pillow's number."""
    name = PIL_INTERPOLATIONS.get(value, value) if isinstance(value, int) else getattr(value, "value", value)
    if name not in INTERPOLATIONS:
        raise argument(f"{what}: interpolation cannot be {value!r}", "one of: " + ", ".join(INTERPOLATIONS))
    return str(name)


def positive(what: str, *sizes: int) -> None:
    if any(size <= 0 for size in sizes):
        raise argument(f"{what}: size cannot be {sizes!r}", "a size is at least 1 pixel")


def pair(what: str, size: Size) -> tuple[int, int]:
    sides = sides_of(what, size)
    positive(what, *sides)
    return sides[0], sides[-1]


def sides_of(what: str, size: Size) -> list[int]:
    """The size as one number or two."""
    try:
        sides = [operator.index(side) for side in ([size] if isinstance(size, int) else size)]
    except TypeError:
        sides = []
    if len(sides) not in (1, 2):
        raise argument(f"{what}: size cannot be {size!r}", "give an int, or (height, width)")
    return sides


def interval(what: str, value: Interval, low: float = float("-inf"), high: float = float("inf")) -> list[float]:
    if len(value) != 2 or not low <= value[0] <= value[1] <= high:
        raise argument(f"{what} cannot be {value!r}", f"give an interval (low, high) within [{low}, {high}]")
    return [float(value[0]), float(value[1])]


def amount(
    what: str, value: Amount | None, center: float = 1.0, low: float = 0.0, high: float = float("inf")
) -> list[float]:
    if value is None:
        return [center, center]
    if isinstance(value, (int, float)):
        if value < 0:
            raise argument(f"{what} cannot be {value!r}", "a single number must not be negative")
        value = (max(low, center - value) if center else -value, center + value)
    return interval(what, value, low, high)


def channels(what: str, value: Sequence[float]) -> list[float]:
    values = [float(part) for part in value]
    if len(values) == 1:
        values = values * 3
    if len(values) != 3:
        raise argument(f"{what} cannot be {tuple(value)!r}", "give one number, or one for each of three channels")
    return values
