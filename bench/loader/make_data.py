#!/usr/bin/env python3
"""Generates what the loaders are measured on: synthetic photos as files and as tar shards, and text samples.

    make_data.py DIR [--count 2000] [--large 200] [--texts 2000]

DIR/small/<class>/<number>.jpg   500x375, quality 90, about 100 kB each (examples/make_photos.py)
DIR/large/<class>/<number>.jpg   2000x1500, the same kind of picture
DIR/small-tar/shard-NNN.tar      the small ones as WebDataset: <number>.jpg and <number>.cls, 250 samples a shard
DIR/text-tar/shard-NNN.tar       64 KiB of text each: <number>.txt and <number>.cls
DIR/text/<class>/<number>.txt    the same texts as files

The same arguments give the same files, and existing files are kept.
"""

from __future__ import annotations

import argparse
import functools
import io
import multiprocessing
import os
import random
import sys
import tarfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples"))
import make_photos

SHARD = 250
TEXT_BYTES = 65536
SYLLABLES = ("ka", "lo", "mi", "su", "te")
WORDS = [f"{a}{b}{c}" for a in SYLLABLES for b in ("r", "n", "st", "v") for c in ("a", "en", "is", "o", "um")]


def make_images(directory: Path, count: int, width: int, height: int) -> None:
    # Set before the pool forks: the workers inherit it.
    make_photos.WIDTH, make_photos.HEIGHT = width, height
    with multiprocessing.Pool(len(os.sched_getaffinity(0))) as pool:
        make = functools.partial(make_photos.make, directory, 1)
        total = sum(pool.imap_unordered(make, range(count), chunksize=4))
    print(f"{directory}: {count} photos of {width}x{height}, {total / max(count, 1) / 1000:.0f} kB each")


def text(number: int) -> bytes:
    words = random.Random(number).choices(WORDS, k=TEXT_BYTES // 4)
    return " ".join(words).encode()[:TEXT_BYTES]


def make_texts(directory: Path, count: int) -> None:
    for number in range(count):
        path = directory / make_photos.CLASSES[number % len(make_photos.CLASSES)] / f"{number:06d}.txt"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            unfinished = path.with_suffix(".part")
            unfinished.write_bytes(text(number))
            unfinished.rename(path)
    print(f"{directory}: {count} texts of {TEXT_BYTES} bytes")


def add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = len(content)
    archive.addfile(entry, io.BytesIO(content))


def make_shards(files: list[Path], directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    labels = {name: number for number, name in enumerate(sorted({path.parent.name for path in files}))}
    for first in range(0, len(files), SHARD):
        shard = directory / f"shard-{first // SHARD:03d}.tar"
        if shard.exists():
            continue
        unfinished = shard.with_suffix(".part")
        with tarfile.open(unfinished, "w") as archive:
            for path in files[first : first + SHARD]:
                add(archive, path.name, path.read_bytes())
                add(archive, f"{path.stem}.cls", str(labels[path.parent.name]).encode())
        unfinished.rename(shard)
    print(f"{directory}: {-(-len(files) // SHARD)} shards")


def by_number(directory: Path) -> list[Path]:
    """All files in the order of their numbers, so with the classes mixed."""
    return sorted((path for path in directory.glob("*/*.*") if path.suffix != ".part"), key=lambda path: path.name)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory", type=Path, metavar="DIR")
    parser.add_argument("--count", type=int, default=2000, help="photos of 500x375 (%(default)s)")
    parser.add_argument("--large", type=int, default=200, help="photos of 2000x1500 (%(default)s)")
    parser.add_argument("--texts", type=int, default=2000, help="texts of 64 KiB (%(default)s)")
    args = parser.parse_args()
    make_images(args.directory / "small", args.count, 500, 375)
    make_images(args.directory / "large", args.large, 2000, 1500)
    make_texts(args.directory / "text", args.texts)
    make_shards(by_number(args.directory / "small"), args.directory / "small-tar")
    make_shards(by_number(args.directory / "text"), args.directory / "text-tar")


if __name__ == "__main__":
    main()
