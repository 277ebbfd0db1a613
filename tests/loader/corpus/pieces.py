"""Pictures and arrays as files, and files by their pieces: what make_corpus.py breaks them with."""

from __future__ import annotations

import io
import re
import struct
import subprocess
import tempfile
import zlib

import numpy as np
from PIL import Image

WIDTH, HEIGHT = 48, 32


# --- Pictures


def photo(width: int = WIDTH, height: int = HEIGHT) -> np.ndarray:
    y, x = np.mgrid[0:height, 0:width].astype(np.float64)
    red = 128 + 100 * np.sin(x / 9) * np.cos(y / 7)
    green = 40 + 3 * x + 2 * y
    blue = np.where((x // 12 + y // 8) % 2 == 0, 210 - 2 * y, 60 + x)
    noise = np.random.default_rng(1).normal(0, 4, (height, width, 3))
    return np.clip(np.stack([red, green, blue], -1) + noise, 0, 255).astype(np.uint8)


def encode(image: np.ndarray | Image.Image, kind: str = "JPEG", **options) -> bytes:
    if isinstance(image, np.ndarray):
        image = Image.fromarray(image)
    if kind == "JPEG":
        options = {"quality": 90, **options}
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def decoded(data: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))


def as_rgb(gray: np.ndarray) -> np.ndarray:
    return np.repeat(gray.astype(np.uint8)[..., None], 3, axis=2)


# --- JPEG, by the segment


def segments(jpeg: bytes) -> list[tuple[int, int, int]]:
    """(marker, begin, end) of each segment before the first scan's data; the last one is SOS."""
    found, at = [], 2
    while True:
        marker, length = jpeg[at + 1], struct.unpack(">H", jpeg[at + 2 : at + 4])[0]
        found.append((marker, at, at + 2 + length))
        at += 2 + length
        if marker == 0xDA:
            return found


def segment(jpeg: bytes, marker: int) -> tuple[int, int]:
    return next((begin, end) for m, begin, end in segments(jpeg) if m == marker)


def without(jpeg: bytes, marker: int) -> bytes:
    for m, begin, end in reversed(segments(jpeg)):
        if m == marker:
            jpeg = jpeg[:begin] + jpeg[end:]
    return jpeg


def scan_begin(jpeg: bytes) -> int:
    return segment(jpeg, 0xDA)[1]


def changed(data: bytes, at: int, new: bytes) -> bytes:
    return data[:at] + new + data[at + len(new) :]


def frame_size(jpeg: bytes, width: int, height: int, marker: int = 0xC0) -> bytes:
    return changed(jpeg, segment(jpeg, marker)[0] + 5, struct.pack(">HH", height, width))


def restart_markers(jpeg: bytes) -> list[int]:
    return [m.start() for m in re.finditer(rb"\xff[\xd0-\xd7]", jpeg) if m.start() > scan_begin(jpeg)]


def with_exif(orientation: int, jpeg: bytes, order: str = "<") -> bytes:
    tiff = (b"II*\0" if order == "<" else b"MM\0*") + struct.pack(order + "I", 8)
    tiff += struct.pack(order + "HHHIHHI", 1, 0x0112, 3, 1, orientation, 0, 0)
    body = b"Exif\0\0" + tiff
    return jpeg[:2] + b"\xff\xe1" + struct.pack(">H", len(body) + 2) + body + jpeg[2:]


def jpegtran(jpeg: bytes, *options: str) -> bytes:
    return subprocess.run(["jpegtran", *options], input=jpeg, stdout=subprocess.PIPE, check=True).stdout


def in_three_scans(jpeg: bytes) -> bytes:
    with tempfile.NamedTemporaryFile("w") as script:
        script.write("0; 1; 2;")
        script.flush()
        return jpegtran(jpeg, "-scans", script.name)


# --- PNG, by the chunk

PASSES = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def header(width: int, height: int, depth: int, colour: int, interlaced: bool = False) -> bytes:
    return chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, int(interlaced)))


def rows_of(samples: np.ndarray, depth: int) -> bytes:
    """Rows without a filter. `samples` is height x width x channels."""
    out = b""
    if samples.size == 0:  # a pass of a small interlaced image
        return out
    for row in samples.reshape(samples.shape[0], -1):
        if depth == 16:
            packed = row.astype(">u2").tobytes()
        else:
            bits = np.unpackbits(row.astype(np.uint8)[:, None], axis=1)[:, 8 - depth :]
            packed = np.packbits(bits.reshape(-1)).tobytes()
        out += b"\0" + packed
    return out


def png(
    samples: np.ndarray, depth: int, colour: int, before: bytes = b"", interlaced: bool = False, idats: int = 1
) -> bytes:
    if samples.ndim == 2:
        samples = samples[..., None]
    height, width = samples.shape[:2]
    if interlaced:
        raw = b"".join(rows_of(samples[y::dy, x::dx], depth) for x, y, dx, dy in PASSES)
    else:
        raw = rows_of(samples, depth)
    packed = zlib.compress(raw, 9)
    size = -(-len(packed) // idats)
    data = b"".join(chunk(b"IDAT", packed[i : i + size]) for i in range(0, len(packed), size))
    head = b"\x89PNG\r\n\x1a\n" + header(width, height, depth, colour, interlaced)
    return head + before + data + chunk(b"IEND", b"")


def raw_png(head: bytes, raw: bytes, compressed: bool = True) -> bytes:
    data = zlib.compress(raw) if compressed else raw
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", data) + chunk(b"IEND", b"")


def chunk_at(data: bytes, kind: bytes) -> int:
    return data.index(kind) - 4


# --- WebP, by the chunk


def riff(chunks: bytes, size: int | None = None) -> bytes:
    return b"RIFF" + struct.pack("<I", len(chunks) + 4 if size is None else size) + b"WEBP" + chunks


def riff_chunk(kind: bytes, data: bytes) -> bytes:
    return kind + struct.pack("<I", len(data)) + data + b"\0" * (len(data) % 2)


def u24(value: int) -> bytes:
    return struct.pack("<I", value)[:3]


def vp8x(flags: int, width: int, height: int) -> bytes:
    return riff_chunk(b"VP8X", bytes([flags, 0, 0, 0]) + u24(width - 1) + u24(height - 1))


# --- .npy


def npy(array: np.ndarray, version: tuple[int, int] | None = None, allow_pickle: bool = False) -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, array, version=version, allow_pickle=allow_pickle)
    return buffer.getvalue()


def npy_text(text: str, data: bytes = b"\0" * 24, major: int = 1) -> bytes:
    head = text.encode("latin1") + b"\n"
    size = struct.pack("<H" if major == 1 else "<I", len(head))
    return b"\x93NUMPY" + bytes([major, 0]) + size + head + data
