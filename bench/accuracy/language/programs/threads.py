"""Two ranks train a language model, started from the script itself.

Cause: each rank computes with as many threads as there are cores; torchrun would have set OMP_NUM_THREADS=1.
Fix: torch.set_num_threads(1) in each.
"""

import tempfile

import torch
from common import WORDS, Clock, end_of_rank, options
from gpt import GPT, get_batch
from torch.nn.parallel import DistributedDataParallel

opts = options()


def train(rank, ranks, meeting):
    torch.set_num_threads(1 if opts.fixed else 2)
    torch.distributed.init_process_group("gloo", f"file://{meeting}", rank=rank, world_size=ranks)
    torch.manual_seed(0)
    model = DistributedDataParallel(GPT(WORDS, 64, layers=3))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    data, noise = torch.randint(WORDS, (500_000,)), torch.Generator().manual_seed(rank)
    clock, over = Clock(opts.seconds), torch.zeros(1)
    while not over:
        x, y = get_batch(data, 4, 64, noise)
        loss = model(x, y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        over[0] = float(clock.done(x.numel()))
        torch.distributed.broadcast(over, 0)
    end_of_rank(clock, rank)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(train, (2, f"{folder}/meeting"), nprocs=2)
