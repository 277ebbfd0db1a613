"""
NAME     One worker where two are needed
PLANTED  a batch takes one worker more than four times as long to decode as the network takes to train on it
EXPECT   input-bound too-few-workers
TRUTH    wait
FIX      num_workers
NEEDS    two-cores
"""

from torch.utils.data import DataLoader
from training import Network, Photos, StepClock, Trainer, arguments


def main() -> None:
    args = arguments(lambda parser: parser.add_argument("--num-workers", type=int, default=1))
    clock = StepClock()
    trainer = Trainer(Network(width=16), clock)
    photos = Photos(args.photos, length=16 * args.steps)
    loader = DataLoader(photos, batch_size=16, num_workers=args.num_workers)
    for images, labels in clock.waits(loader, epochs=args.epochs):
        trainer.step(images, labels)
    clock.write(args.truth)


if __name__ == "__main__":
    main()
