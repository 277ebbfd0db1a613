"""What all Python contenders of run.py share: the arguments, the clock, and the JSON line at the end.

A contender is a module with a function `open_loader(options)` that returns an object to iterate once per epoch, each
item a batch. `run` iterates it for `--seconds` after a warm-up. With `--check FILE` the loader is opened with
`options.check`: images in the order of their paths, resized whole to 224x224; the first batch is written as raw
float32.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable

SIDE, BATCH = 224, 64
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
WARM_UP_S = 1.0


@dataclass
class Options:
    data: Path
    kind: str  # image, text, image-tar, text-tar
    threads: int
    workers: int  # processes, if the contender has any; else unused
    check: bool
    numpy: bool  # NumPy arrays, without torch in the process, if the contender can do that


def files(data: Path, kind: str) -> list[Path]:
    return sorted(data.glob("*/*.txt" if kind == "text" else "*/*.jpg"))


def shards(data: Path) -> list[str]:
    return [str(path) for path in sorted(data.glob("*.tar"))]


def label_of(paths: list[Path]) -> dict[str, int]:
    return {name: number for number, name in enumerate(sorted({path.parent.name for path in paths}))}


def endless(loader: Any) -> Iterator[Any]:
    while True:
        yield from loader


def rows_of(batch: Any) -> int:
    return len(batch[0])


def touch(batch: Any) -> None:
    """Reads one value per row, so that nobody wins by not producing it."""
    images = batch[0]
    for row in range(len(images)):
        first = images[row]
        if not isinstance(first, (str, bytes)):
            float(first[0][0][0])


def own_peak_mb() -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    return 0.0


def cpu_s() -> float:
    """CPU time of this process and its children."""
    total = time.process_time()
    for child in multiprocessing.active_children():
        fields = Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()
        total += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return total


def measure(open_loader: Callable[[Options], Any], options: Options, seconds: float) -> dict[str, float]:
    begin = time.perf_counter()
    loader = open_loader(options)
    constructed = time.perf_counter()
    batches = endless(loader)
    touch(next(batches))
    first = time.perf_counter()
    while time.perf_counter() - first < WARM_UP_S:
        touch(next(batches))
    samples, since, cpu = 0, time.perf_counter(), cpu_s()
    while time.perf_counter() - since < seconds:
        batch = next(batches)
        touch(batch)
        samples += rows_of(batch)
    elapsed = time.perf_counter() - since
    return {
        "samples_per_s": samples / elapsed,
        "cpu_ms_per_sample": 1e3 * (cpu_s() - cpu) / samples,
        "first_batch_s": first - begin,
        "constructed_to_first_batch_s": first - constructed,
        "peak_mb": own_peak_mb(),
    }


def run(open_loader: Callable[[Options], Any]) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("data", type=Path)
    parser.add_argument("--kind", default="image", choices=("image", "text", "image-tar", "text-tar"))
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--check", type=Path)
    parser.add_argument("--numpy", action="store_true")
    args = parser.parse_args()
    options = Options(args.data, args.kind, args.threads, args.workers, args.check is not None, args.numpy)
    if args.check:
        import numpy

        batch = next(iter(open_loader(options)))
        numpy.asarray(batch[0], dtype=numpy.float32).tofile(args.check)
    else:
        print(json.dumps(measure(open_loader, options, args.seconds)), flush=True)
    os._exit(0)  # some peers take seconds to exit, or never do
