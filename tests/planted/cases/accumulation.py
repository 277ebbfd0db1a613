"""
NAME     Gradient accumulation with a computation on all cores, batches from memory
PLANTED  nothing: a loader worker would take a core from the computation, and handing batches over costs more than
         fetching them
EXPECT   *
NEVER    num_workers
"""

import os

import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset
from training import StepClock, arguments

BATCH = 64
BATCHES_PER_STEP = 4
FEATURES = 1024


def main() -> None:
    args = arguments()
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    clock = StepClock()
    wide = [nn.Linear(FEATURES, FEATURES), nn.ReLU(), nn.Linear(FEATURES, FEATURES), nn.ReLU()]
    model = nn.Sequential(*wide, nn.Linear(FEATURES, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    samples = BATCH * BATCHES_PER_STEP * args.steps
    table, labels = torch.randn(4096, FEATURES), torch.arange(4096) % 10
    chosen = torch.arange(samples) % 4096
    loader = DataLoader(TensorDataset(chosen), batch_size=BATCH)
    for number, (rows,) in enumerate(clock.waits(loader), start=1):
        loss = functional.cross_entropy(model(table[rows]), labels[rows])
        (loss / BATCHES_PER_STEP).backward()
        if number % BATCHES_PER_STEP == 0:
            optimizer.step()
            optimizer.zero_grad()
            clock.step_done()
    clock.write(args.truth)


if __name__ == "__main__":
    main()
