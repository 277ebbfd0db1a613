"""
NAME     One of two ranks has more to do
PLANTED  rank 1 decodes eight photos that rank 0 does not have
EXPECT   straggler
RANK     1
TRUTH    more
LAUNCH   -m torch.distributed.run --nproc-per-node 2 --master-port {port}
"""

import os

import torch
import torch.distributed
from torch.nn.parallel import DistributedDataParallel
from training import SIZE, Network, Photos, StepClock, Trainer, arguments


def main() -> None:
    args = arguments()
    torch.distributed.init_process_group("gloo")
    rank = int(os.environ["RANK"])
    clock = StepClock()
    trainer = Trainer(DistributedDataParallel(Network(width=32)), clock)
    photos = Photos(args.photos, length=1000)
    images, labels = torch.randn(16, 3, SIZE, SIZE), torch.arange(16) % 10
    for _ in range(args.steps):
        if rank == 1:
            with clock.timed("more"):
                for place in range(8):
                    images[place], labels[place] = photos[place]
        trainer.step(images, labels)
    if rank == 1:
        clock.write(args.truth)
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()
    os._exit(0)  # torch 2.13's gloo threads at times abort a regular exit, without fullbore as well


if __name__ == "__main__":
    main()
