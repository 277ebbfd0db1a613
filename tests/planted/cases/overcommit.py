"""
NAME     Sixteen workers for a dataset of twenty batches
PLANTED  each short epoch starts sixteen processes anew, and waits for them
EXPECT   worker-overcommit
TRUTH    start
"""

from torch.utils.data import DataLoader
from training import Network, Photos, StepClock, Trainer, arguments

BATCHES = 20


def main() -> None:
    args = arguments(lambda parser: parser.add_argument("--num-workers", type=int, default=16))
    clock = StepClock()
    trainer = Trainer(Network(width=48), clock)
    photos = Photos(args.photos, length=8 * BATCHES, size=64)
    loader = DataLoader(photos, batch_size=8, num_workers=args.num_workers, shuffle=True)
    for _ in range(args.steps // BATCHES):
        for images, labels in clock.waits(loader, first="start"):
            trainer.step(images, labels)
    clock.write(args.truth)


if __name__ == "__main__":
    main()
