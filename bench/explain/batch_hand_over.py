#!/usr/bin/env python3
"""Measures what predictions assume about batches that come from a worker: run it on a quiet machine with two cores.

    .venv/bin/python bench/explain/batch_hand_over.py

Prints what `next()` takes when a batch is ready, what the first reading of its shared memory adds to a copy of it on
one thread (as a copy from pageable memory reads it), what giving that memory back takes, and how much longer the
training thread's own way through the framework takes while a worker on another core decodes pictures.
"""

from __future__ import annotations

import io
import multiprocessing
import os
import time
from statistics import median

import numpy as np
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset

ROUNDS = 12
MEGABYTES = (1, 4, 16, 64)


class Samples(Dataset):
    def __init__(self, numbers: int) -> None:
        self.numbers = numbers

    def __len__(self) -> int:
        return 16 * (ROUNDS + 8)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        return torch.full((self.numbers,), float(index)), index


def taken_and_read(megabytes: int) -> tuple[float, float, float, float]:
    """Milliseconds: next() with a batch ready, a copy of it, the same copy once more, and the end of its memory."""
    target = torch.zeros(16, megabytes * 1_000_000 // 16 // 4)
    batches = iter(DataLoader(Samples(target.shape[1]), batch_size=16, num_workers=1))
    figures = []
    for _ in range(ROUNDS):
        time.sleep(0.05 + 0.005 * megabytes)  # until the next one is ready
        moments = [time.perf_counter_ns()]
        batch = next(batches)
        moments.append(time.perf_counter_ns())
        for _ in range(2):
            target.copy_(batch[0])
            moments.append(time.perf_counter_ns())
        del batch
        moments.append(time.perf_counter_ns())
        figures.append([(end - begin) / 1e6 for begin, end in zip(moments, moments[1:])])
    return tuple(median(column) for column in zip(*figures[2:]))


def decode(stop: multiprocessing.Event) -> None:
    os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[-1]})
    picture = io.BytesIO()
    Image.fromarray(np.random.default_rng(0).integers(0, 255, (375, 500, 3), np.uint8)).save(picture, "JPEG")
    while not stop.is_set():
        Image.open(io.BytesIO(picture.getvalue())).resize((224, 224))


def way_to_a_launch_us() -> float:
    """An operator on a few numbers: nearly all of it is Python and the framework, as before a launch."""
    small = torch.ones(4)
    times = []
    for _ in range(200):
        begin = time.perf_counter_ns()
        for _ in range(200):
            small.add(small)
        times.append((time.perf_counter_ns() - begin) / 200e3)
    return median(times)


def beside_a_worker() -> list[float]:
    os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[0]})
    torch.set_num_threads(1)
    ratios = []
    for _ in range(5):
        alone = way_to_a_launch_us()
        stop = multiprocessing.Event()
        worker = multiprocessing.Process(target=decode, args=(stop,))
        worker.start()
        time.sleep(0.5)
        ratios.append(way_to_a_launch_us() / alone)
        stop.set()
        worker.join()
    return ratios


def main() -> None:
    torch.set_num_threads(1)
    print(f"{'batch':>8} {'next()':>10} {'first copy':>11} {'the next':>9} {'first touch':>12} {'unmapping':>11}")
    for megabytes in MEGABYTES:
        taken, first, again, freed = taken_and_read(megabytes)
        touch = (first - again) / megabytes  # ns a byte
        milliseconds = f"{taken:7.2f} ms {first:8.2f} ms {again:6.2f} ms"
        print(f"{megabytes:5} MB {milliseconds} {touch:7.3f} ns/B {freed / megabytes:6.3f} ns/B")
    ratios = beside_a_worker()
    print(f"the way to a launch, beside a decoding worker: {median(ratios):.2f}x", [round(one, 2) for one in ratios])


if __name__ == "__main__":
    main()
