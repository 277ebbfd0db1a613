"""How the strangers' programs get their batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

import torch

T = TypeVar("T")


def forever(batches: Iterable[T]) -> Iterator[T]:
    """Epoch after epoch. A DataLoader shuffles again for each."""
    while True:
        yield from batches


def prefetched(batches: Iterator[tuple[torch.Tensor, ...]]) -> Iterator[tuple[torch.Tensor, ...]]:
    """Each batch is copied while the one before it trains: the data_prefetcher of NVIDIA's examples."""
    stream = torch.cuda.Stream()

    def copied() -> tuple[torch.Tensor, ...]:
        with torch.cuda.stream(stream):
            return tuple(part.to("cuda", non_blocking=True) for part in next(batches))

    coming = copied()
    while True:
        torch.cuda.current_stream().wait_stream(stream)
        batch = coming
        for part in batch:
            part.record_stream(torch.cuda.current_stream())
        coming = copied()
        yield batch
