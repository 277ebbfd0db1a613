"""
NAME     Two processes that train one shared model, each with a thread of its own
PLANTED  nothing: the two processes keep two cores busy, and a loader worker of each would take turns with them
EXPECT   *
NEVER    num_workers
NEEDS    two-cores
"""

import os

import torch
import torch.multiprocessing
from training import Network, Photos, StepClock, Trainer, arguments


def train(rank: int, model: torch.nn.Module, args) -> None:
    torch.set_num_threads(1)
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])
    clock = StepClock()
    trainer = Trainer(model, clock)
    loader = torch.utils.data.DataLoader(Photos(args.photos, 4 * args.steps), batch_size=4)
    for images, labels in clock.waits(loader):
        trainer.step(images, labels)
    if rank == 0:
        clock.write(args.truth)


def main() -> None:
    args = arguments()
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])
    model = Network(width=96)
    model.share_memory()
    torch.multiprocessing.spawn(train, args=(model, args), nprocs=2)


if __name__ == "__main__":
    main()
