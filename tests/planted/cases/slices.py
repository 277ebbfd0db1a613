"""
NAME     Rows of a tensor, taken one by one and put together again
PLANTED  a TensorDataset whose batches are a thousand slices each
EXPECT   input-bound slices
FIX      whole
"""

import torch
from torch import nn
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, TensorDataset
from training import StepClock, Trainer, arguments

SAMPLES, WIDTH, BATCH = 200_000, 40, 1024


def main() -> None:
    args = arguments(lambda parser: parser.add_argument("--whole", action="store_true"))
    clock = StepClock()
    trainer = Trainer(nn.Sequential(nn.Linear(WIDTH, 64), nn.ReLU(), nn.Linear(64, 10)), clock)
    rows = TensorDataset(torch.randn(SAMPLES, WIDTH), torch.randint(10, (SAMPLES,)))
    if args.whole:
        sampler = BatchSampler(RandomSampler(rows), BATCH, drop_last=True)
        loader = DataLoader(rows, batch_size=None, sampler=sampler)
    else:
        loader = DataLoader(rows, batch_size=BATCH, shuffle=True, drop_last=True)
    for inputs, labels in clock.waits(loader, epochs=args.epochs):
        trainer.step(inputs, labels)
    clock.write(args.truth)


if __name__ == "__main__":
    main()
