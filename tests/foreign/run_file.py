"""Reads a run file as docs/run-file.md says, without any of our code."""

from __future__ import annotations

import ctypes
import json
import os
import sqlite3
from typing import Any

STEPS, SAMPLES = 3, 4  # columns of a block of windows


def inflate(blob: bytes) -> bytes:
    zstd = ctypes.CDLL("libzstd.so.1")
    zstd.ZSTD_getFrameContentSize.restype = ctypes.c_ulonglong
    zstd.ZSTD_getFrameContentSize.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
    zstd.ZSTD_decompress.restype = ctypes.c_size_t
    zstd.ZSTD_decompress.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t]
    size = zstd.ZSTD_getFrameContentSize(blob, len(blob))
    out = ctypes.create_string_buffer(size)
    assert zstd.ZSTD_decompress(out, size, blob, len(blob)) == size
    return out.raw


def columns(blob: bytes) -> list[list[int]]:
    data = inflate(blob)
    at = 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    found = []
    for _ in range(varint()):
        n, flag = varint(), data[at]
        at += 1
        present = n
        if flag:
            bits = data[at : at + (n + 7) // 8]
            at += len(bits)
            present = sum(bin(byte).count("1") for byte in bits)
        value, values = 0, []
        for _ in range(present):
            step = varint()
            value += (step >> 1) ^ -(step & 1)
            values.append(value)
        found.append(values)
    return found


def ranks(run_file: str | os.PathLike) -> list[dict[str, Any]]:
    """Each rank's counts, facts and loaders."""
    with sqlite3.connect(run_file) as database:
        answer = []
        for rank, facts in database.execute("SELECT rank, facts FROM rank ORDER BY rank").fetchall():
            windows = database.execute("SELECT data FROM step_window WHERE rank = ?", (rank,)).fetchall()
            blocks = [columns(data) for (data,) in windows]
            loaders = database.execute("SELECT about FROM loader WHERE rank = ?", (rank,)).fetchall()
            answer.append(
                {
                    "rank": rank,
                    "steps": sum(sum(block[STEPS]) for block in blocks),
                    "samples": sum(sum(block[SAMPLES]) for block in blocks),
                    "facts": {key: value for key, value in json.loads(facts).items()},
                    "loaders": [json.loads(about) for (about,) in loaders],
                }
            )
        return answer
