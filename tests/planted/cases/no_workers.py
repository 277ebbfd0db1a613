"""
NAME     Expensive decoding, all of it in the training thread
PLANTED  every photo is decoded inside the training loop, because num_workers is 0
EXPECT   input-bound no-workers
TRUTH    wait
FIX      num_workers
"""

from torch.utils.data import DataLoader
from training import Network, Photos, StepClock, Trainer, arguments


def main() -> None:
    args = arguments(lambda parser: parser.add_argument("--num-workers", type=int, default=0))
    clock = StepClock()
    trainer = Trainer(Network(width=64), clock)
    photos = Photos(args.photos, length=16 * args.steps)
    loader = DataLoader(photos, batch_size=16, num_workers=args.num_workers)
    for images, labels in clock.waits(loader, epochs=args.epochs):
        trainer.step(images, labels)
    clock.write(args.truth)


if __name__ == "__main__":
    main()
