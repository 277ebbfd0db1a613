#!/usr/bin/env python3
"""What a training waits for each worker that its DataLoader starts at the beginning of an epoch, and for its end.

    .venv/bin/python bench/explain/worker_start.py

An epoch of few cheap batches with W workers, less the same epoch with workers that are kept: the difference, by W, is
`kWorkerStartNs` (src/explain/replay/pipeline.h) for each.
"""

from __future__ import annotations

import statistics
import time

import torch
from torch.utils.data import DataLoader, TensorDataset

EPOCHS = 12


def epoch_ms(loader: DataLoader) -> float:
    times = []
    for _ in range(EPOCHS):
        begin = time.perf_counter()
        for _ in loader:
            pass
        times.append(1e3 * (time.perf_counter() - begin))
    return statistics.median(times[2:])


def main() -> None:
    dataset = TensorDataset(torch.randn(256, 3, 32, 32), torch.zeros(256))
    print(f"torch {torch.__version__}, median of {EPOCHS - 2} epochs of 8 batches")
    for workers in (1, 2, 4, 8):
        anew = epoch_ms(DataLoader(dataset, batch_size=32, num_workers=workers))
        kept = epoch_ms(DataLoader(dataset, batch_size=32, num_workers=workers, persistent_workers=True))
        print(
            f"{workers} workers: started anew {anew:.1f} ms, kept {kept:.1f} ms: {(anew - kept) / workers:.1f} ms each"
        )


if __name__ == "__main__":
    main()
