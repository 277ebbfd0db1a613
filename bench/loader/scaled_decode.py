#!/usr/bin/env python3
"""How much decoding a JPEG at 1/2 or 1/4 in its DCT changes the pixels, by how much larger than the result it still is.

    scaled_decode.py DIRECTORY      any photographs: JPEG or PNG, searched below; needs Pillow and NumPy

Each is encoded at quality 90, decoded in full and at the smaller scale, and both are resized to the same size with
Pillow's antialiased bilinear filter. Prints the mean absolute difference, in steps of 1/255, over all pictures and for
the worst one. The margins in src/loader/core/transform/image_plan.cc come from this table.
"""

from __future__ import annotations

import io
import sys
from pathlib import Path

import numpy
from PIL import Image, UnidentifiedImageError

SCALES, MARGINS = (2, 4), (1, 1.25, 1.5, 1.75, 2, 2.5, 3)
SMALLEST_SIDE, SMALLEST_RESULT = 290, 16


def photographs(directory: Path) -> list[bytes]:
    found = []
    for path in sorted(directory.rglob("*")):
        try:
            image = Image.open(path).convert("RGB")
        except (UnidentifiedImageError, OSError):
            continue
        if min(image.size) >= SMALLEST_SIDE:
            encoded = io.BytesIO()
            image.save(encoded, "JPEG", quality=90)
            found.append(encoded.getvalue())
    return found


def difference(encoded: bytes, scale: int, margin: float) -> float | None:
    full, scaled = Image.open(io.BytesIO(encoded)), Image.open(io.BytesIO(encoded))
    scaled.draft("RGB", (full.width // scale, full.height // scale))
    size = (int(full.width / (scale * margin)), int(full.height / (scale * margin)))
    if min(size) < SMALLEST_RESULT:
        return None
    one, other = (numpy.asarray(image.resize(size, Image.BILINEAR), dtype=float) for image in (full, scaled))
    return float(abs(one - other).mean())


def main() -> int:
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        print(__doc__, file=sys.stderr)
        return 2
    pictures = photographs(Path(sys.argv[1]))
    if not pictures:
        print(f"no photographs of at least {SMALLEST_SIDE} pixels below {sys.argv[1]}", file=sys.stderr)
        return 1
    print(f"{len(pictures)} pictures; difference in steps of 1/255")
    print(" decoded at   still larger by   mean   worst picture")
    for scale in SCALES:
        for margin in MARGINS:
            differences = [found for encoded in pictures if (found := difference(encoded, scale, margin)) is not None]
            if differences:
                print(f"        1/{scale}   {margin:15}   {numpy.mean(differences):4.2f}   {max(differences):13.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
