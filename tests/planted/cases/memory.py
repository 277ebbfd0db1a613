"""
NAME     A dataset larger than the memory the job may use
PLANTED  rows of a mapped file are read in random order under a memory limit of a quarter of its size
EXPECT   host-memory
TRUTH    wait
NEEDS    memory-cgroup
MEMORY   256
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset
from training import SIZE, Network, StepClock, Trainer, arguments

ROW_BYTES = 3 * SIZE * SIZE * 4


class Rows(Dataset):
    """Images as float32, one after the other in one large file."""

    def __init__(self, path: Path, length: int) -> None:
        self.images = np.memmap(path, np.float32, "r").reshape(-1, 3, SIZE, SIZE)
        self.length = length

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        place = index * 7919 % len(self.images)
        return torch.from_numpy(self.images[place].copy()), index % 10


def main() -> None:
    args = arguments(lambda parser: parser.add_argument("--rows", type=int, default=8000))
    path = args.scratch / "rows.f32"
    row = np.random.default_rng(0).standard_normal(ROW_BYTES // 4).astype(np.float32).tobytes()
    with open(path, "wb") as file:
        for _ in range(args.rows):
            file.write(row)
    clock = StepClock()
    trainer = Trainer(Network(width=32), clock)
    loader = DataLoader(Rows(path, 16 * args.steps), batch_size=16)
    for images, labels in clock.waits(loader):
        trainer.step(images, labels)
    clock.write(args.truth)


if __name__ == "__main__":
    main()
