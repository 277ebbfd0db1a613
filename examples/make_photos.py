#!/usr/bin/env python3
"""Generates photo-like JPEG files to train on: DIR/<class>/<number>.jpg, 500x375, quality 90, about 100 kB each.

The demo ships no photographs, and pure noise or flat colour would not cost as much to decode as a photograph
does. So each picture has what a photograph has: slow gradients, texture at every scale, a few objects with hard
edges and sensor noise. The ten classes differ in the pattern and the tint of the objects, so a network can learn them.

The same arguments give the same files. Existing files are kept, so an interrupted run can be resumed.

    make_photos.py DIR [--count 1500] [--seed 1]
"""

from __future__ import annotations

import argparse
import colorsys
import functools
import math
import multiprocessing
import os
import sys
from pathlib import Path

import numpy as np
from PIL import Image

WIDTH, HEIGHT = 500, 375  # the commonest size in ImageNet
QUALITY = 90
CLASSES = ("stripes", "waves", "checks", "rings", "dots", "bricks", "grid", "rays", "blobs", "scales")


def texture(rng: np.random.Generator) -> np.ndarray:
    """Noise at scales of 2 to 128 pixels, each half as strong as the next larger one: the spectrum of a photograph."""
    total = np.zeros((HEIGHT, WIDTH), np.float32)
    for scale in (2, 4, 8, 16, 32, 64, 128):
        coarse = rng.standard_normal((HEIGHT // scale + 2, WIDTH // scale + 2)).astype(np.float32)
        smooth = Image.fromarray(coarse).resize((WIDTH, HEIGHT), Image.BICUBIC)
        total += np.asarray(smooth) * (scale / 128) ** 0.5
    return total


def pattern(kind: str, x: np.ndarray, y: np.ndarray, period: float) -> np.ndarray:
    """What the objects of a class are covered with, 0 to 1."""
    u, v = 2 * math.pi * x / period, 2 * math.pi * y / period
    radius = np.hypot(u, v)
    if kind == "stripes":
        return 0.5 + 0.5 * np.sin(u)
    if kind == "waves":
        return 0.5 + 0.5 * np.sin(u + 2 * np.sin(v / 2))
    if kind == "checks":
        return (np.sin(u) * np.sin(v) > 0).astype(np.float32)
    if kind == "rings":
        return 0.5 + 0.5 * np.sin(radius)
    if kind == "dots":
        return (np.cos(u) + np.cos(v) > 1).astype(np.float32)
    if kind == "bricks":
        return ((np.sin(u / 2 + math.pi / 2 * (np.sin(v) > 0)) ** 2 > 0.03) & (np.sin(v) ** 2 > 0.1)).astype(np.float32)
    if kind == "grid":
        return ((np.sin(u / 2) ** 2 < 0.1) | (np.sin(v / 2) ** 2 < 0.1)).astype(np.float32)
    if kind == "rays":
        return 0.5 + 0.5 * np.sin(12 * np.arctan2(v, u))
    if kind == "blobs":
        return (np.sin(u) + np.sin(v * 1.3) + np.sin((u + v) * 0.7) > 0).astype(np.float32)
    return np.clip(np.abs(np.sin(u / 2)) + np.abs(np.cos(v / 2)) - 0.5, 0, 1)  # scales


def picture(label: int, rng: np.random.Generator) -> Image.Image:
    y, x = np.mgrid[0:HEIGHT, 0:WIDTH].astype(np.float32)
    ground = texture(rng)
    light = rng.uniform(-0.3, 0.3) * (x / WIDTH - 0.5) + rng.uniform(-0.3, 0.3) * (y / HEIGHT - 0.5)
    tint = np.array(colorsys.hsv_to_rgb(rng.random(), rng.uniform(0, 0.4), rng.uniform(0.4, 0.7)), np.float32)
    rgb = tint + (0.10 * ground + light)[..., None]

    for _ in range(rng.integers(2, 5)):
        centre_x, centre_y = rng.uniform(0.15, 0.85) * WIDTH, rng.uniform(0.15, 0.85) * HEIGHT
        angle, size = rng.uniform(0, math.pi), rng.uniform(0.2, 0.45) * HEIGHT
        across = (x - centre_x) * math.cos(angle) + (y - centre_y) * math.sin(angle)
        along = (y - centre_y) * math.cos(angle) - (x - centre_x) * math.sin(angle)
        outline = (across / size) ** 2 + (along / size / rng.uniform(0.6, 1)) ** 2 + 0.1 * ground
        # Hues of neighbouring classes overlap, so that colour alone does not distinguish them.
        hue = (label / len(CLASSES) + rng.normal(0, 0.08)) % 1
        colour = np.array(colorsys.hsv_to_rgb(hue, rng.uniform(0.3, 0.8), rng.uniform(0.5, 0.95)), np.float32)
        cover = pattern(CLASSES[label], across, along, rng.uniform(24, 60))
        shade = (0.35 + 0.65 * cover + 0.06 * ground)[..., None]
        rgb = np.where((outline < 1)[..., None], colour * shade, rgb)

    rgb = rgb + rng.standard_normal((HEIGHT, WIDTH, 3), np.float32) * 0.06  # the sensor
    return Image.fromarray((np.clip(rgb, 0, 1) * 255).astype(np.uint8))


def make(directory: Path, seed: int, number: int) -> int:
    """Writes picture `number` unless it exists; returns its size in bytes."""
    label = number % len(CLASSES)
    path = directory / CLASSES[label] / f"{number:06d}.jpg"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(f".{os.getpid()}.part")
        rng = np.random.default_rng((seed, number))
        picture(label, rng).save(unfinished, "JPEG", quality=QUALITY)
        unfinished.rename(path)  # a file with its final name is complete
    return path.stat().st_size


def show_progress(done: int, count: int) -> None:
    if sys.stderr.isatty():
        filled = 40 * done // count
        end = "\n" if done == count else ""
        print(f"\rphotos [{'#' * filled}{'.' * (40 - filled)}] {done}/{count}", end=end, file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory", type=Path, metavar="DIR")
    parser.add_argument("--count", type=int, default=1500, help="number of pictures in all (%(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="a different seed gives different pictures (%(default)s)")
    args = parser.parse_args()

    total = 0
    with multiprocessing.Pool(len(os.sched_getaffinity(0))) as pool:
        sizes = pool.imap_unordered(functools.partial(make, args.directory, args.seed), range(args.count), chunksize=8)
        for done, size in enumerate(sizes, 1):
            total += size
            if done % 20 == 0 or done == args.count:
                show_progress(done, args.count)
    print(f"{args.count} photos of {len(CLASSES)} classes in {args.directory}, {total / args.count / 1000:.0f} kB each")


if __name__ == "__main__":
    main()
