"""
NAME     A generator that decodes every batch in the training thread
PLANTED  the loop goes through a generator, and waits while it decodes
EXPECT   input-bound own-iterator
TRUTH    wait
"""

from collections.abc import Iterator

import torch
from torch.utils.data import DataLoader, default_collate
from training import Network, Photos, StepClock, Trainer, arguments


def batches(photos: Photos, size: int) -> Iterator[torch.Tensor]:
    for begin in range(0, len(photos), size):
        yield default_collate([photos[index] for index in range(begin, begin + size)])


def main() -> None:
    args = arguments(lambda parser: parser.add_argument("--num-workers", type=int, help="a DataLoader's, in its place"))
    clock = StepClock()
    trainer = Trainer(Network(width=64), clock)
    photos = Photos(args.photos, length=16 * args.steps)
    feed = DataLoader(photos, 16, num_workers=args.num_workers) if args.num_workers else batches(photos, 16)
    for images, labels in clock.waits(feed):
        trainer.step(images, labels)
    clock.write(args.truth)


if __name__ == "__main__":
    main()
