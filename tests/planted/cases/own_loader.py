"""
NAME     A loader thread of the script's own that does not keep up
PLANTED  one thread decodes photos into a queue; the training takes them faster than it fills
EXPECT   input-bound own-loader
TRUTH    wait
LINE     batches.get
NEEDS    two-cores
"""

import queue
import threading

import torch
from torch.utils.data import default_collate
from training import Network, Photos, StepClock, Trainer, arguments


def fill(batches: queue.Queue, photos: Photos, size: int) -> None:
    for begin in range(0, len(photos), size):
        batches.put(default_collate([photos[index] for index in range(begin, begin + size)]))
    batches.put(None)


def take(batches: queue.Queue, clock: StepClock) -> "tuple[torch.Tensor, torch.Tensor] | None":
    with clock.timed("wait"):
        return batches.get()


def main() -> None:
    args = arguments()
    clock = StepClock()
    trainer = Trainer(Network(width=16), clock)
    batches: queue.Queue = queue.Queue(2)
    photos = Photos(args.photos, length=16 * 2 * args.steps)
    threading.Thread(target=fill, args=[batches, photos, 16], daemon=True).start()
    while (batch := take(batches, clock)) is not None:
        trainer.step(*batch)
    clock.write(args.truth)


if __name__ == "__main__":
    main()
