"""
NAME     Nothing is wrong
PLANTED  a network that computes all the time, fed from memory
EXPECT   healthy
"""

import torch
from torch.utils.data import DataLoader, TensorDataset
from training import SIZE, Network, StepClock, Trainer, arguments


def main() -> None:
    args = arguments()
    clock = StepClock()
    trainer = Trainer(Network(width=64), clock)
    images, labels = torch.randn(16 * 20, 3, SIZE, SIZE), torch.arange(16 * 20) % 10
    loader = DataLoader(TensorDataset(images, labels), batch_size=16, shuffle=True)
    for _ in range(args.steps // 20):
        for inputs, targets in clock.waits(loader):
            trainer.step(inputs, targets)
    clock.write(args.truth)


if __name__ == "__main__":
    main()
