"""
NAME     A slow first epoch that fills a cache
PLANTED  the first thirty steps decode their photos, all later ones find them in memory
EXPECT   healthy
WARMUP   30
"""

import torch
from torch.utils.data import DataLoader
from training import Network, Photos, StepClock, Trainer, arguments

CACHED_STEPS = 30


class CachedPhotos(Photos):
    """Photos that are decoded once."""

    def __init__(self, *args, **kwargs) -> None:
        super().__init__(*args, **kwargs)
        self.cache: dict[int, tuple[torch.Tensor, int]] = {}

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        if index not in self.cache:
            self.cache[index] = super().__getitem__(index)
        return self.cache[index]


def main() -> None:
    args = arguments()
    clock = StepClock()
    trainer = Trainer(Network(width=64), clock)
    loader = DataLoader(CachedPhotos(args.photos, length=16 * CACHED_STEPS), batch_size=16)
    for _ in range(2 * args.steps // CACHED_STEPS):
        for images, labels in clock.waits(loader):
            trainer.step(images, labels)
    clock.write(args.truth)


if __name__ == "__main__":
    main()
