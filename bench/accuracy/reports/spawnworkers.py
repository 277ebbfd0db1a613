"""A long pause before each short epoch: workers are spawned anew.

Source: "Instantiation of Runners is very slow on Windows", https://github.com/Lightning-AI/pytorch-lightning/issues/18862
Cause: with the start method spawn each worker imports everything again, at each epoch.
Fix: persistent_workers=True.
"""

import numpy as np
import torch
from clock import Clock, options
from torch.utils.data import DataLoader, Dataset


class Curves(Dataset):
    def __len__(self):
        return 1600

    def __getitem__(self, index):
        wave = np.random.default_rng(index).standard_normal((4, 2048), dtype=np.float32)
        return np.cumsum(np.sort(wave, axis=1), axis=1) / 2048, index % 10


def main():
    opts = options(20.0)
    torch.manual_seed(0)
    torch.set_num_threads(1)
    loader = DataLoader(
        Curves(), batch_size=16, num_workers=1, multiprocessing_context="spawn", persistent_workers=opts.fixed
    )
    model = torch.nn.Sequential(
        torch.nn.Conv1d(4, 32, 9, 2),
        torch.nn.ReLU(),
        torch.nn.Conv1d(32, 32, 9, 4),
        torch.nn.ReLU(),
        torch.nn.Flatten(),
        torch.nn.Linear(32 * 253, 10),
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    clock = Clock(opts.seconds)
    while True:
        for x, labels in loader:
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(x), labels)
            loss.backward()
            optimizer.step()
            if clock.done(len(labels), loss):
                clock.rate()
                return


if __name__ == "__main__":
    main()
