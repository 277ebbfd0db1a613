"""
NAME     One of two ranks waits for its data
PLANTED  both ranks wait 5 ms for their data in each step, rank 1 another 20 ms, as if its own storage were slow
EXPECT   straggler
RANK     1
TRUTH    held
LAUNCH   -m torch.distributed.run --standalone --nproc-per-node 2
"""

import os
import time

import torch
import torch.distributed
from torch.nn.parallel import DistributedDataParallel
from training import SIZE, Network, StepClock, Trainer, arguments

WAIT_S = 0.005
MORE_S = 0.020


def note_arrivals(network: Network) -> list[float]:
    """When this rank has computed a step's last gradient, those of the first layer: it is then ready to exchange them,
    and whoever comes first waits for the other."""
    arrivals: list[float] = []
    next(network.parameters()).register_hook(lambda _: arrivals.append(time.perf_counter()))
    return arrivals


def main() -> None:
    args = arguments()
    torch.distributed.init_process_group("gloo")
    rank = int(os.environ["RANK"])
    clock = StepClock()
    network = Network(width=32)
    arrivals = note_arrivals(network)
    # Without broadcasting the batch norms' figures the ranks meet once in a step, to exchange the gradients.
    trainer = Trainer(DistributedDataParallel(network, broadcast_buffers=False), clock)
    images, labels = torch.randn(16, 3, SIZE, SIZE), torch.arange(16) % 10
    for _ in range(args.steps):
        # Asleep, not busy: two busy ranks on the two threads of a core slow each other down, and the wait would be
        # shorter than planted. Both sleep, because a rank that has just woken computes more slowly: cold caches, low
        # clock.
        time.sleep(WAIT_S)
        if rank == 1:
            time.sleep(MORE_S)
        trainer.step(images, labels)

    # What the others lose is not what rank 1 sleeps: whoever computes while the other sleeps has the machine alone.
    ranks: list = [None, None]
    torch.distributed.all_gather_object(ranks, arrivals)  # of one machine: one clock
    for step, first, last in zip(clock.steps, *ranks):
        step["held"] = max(0.0, last - first)
    if rank == 1:
        clock.write(args.truth)
    torch.distributed.destroy_process_group()
    os._exit(0)  # torch 2.13's gloo threads sometimes abort a regular exit, also without fullbore


if __name__ == "__main__":
    main()
