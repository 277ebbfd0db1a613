"""A perceptron over rows of numbers, a few at a time: what a step costs apart from its samples sets the pace."""

import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


def main():
    rows = TensorDataset(torch.randn(200_000, 20), torch.randint(2, (200_000,)))
    model = torch.nn.Sequential(torch.nn.Linear(20, 64), torch.nn.ReLU(), torch.nn.Linear(64, 2))
    optimizer = torch.optim.Adam(model.parameters())
    while True:
        for x, y in DataLoader(rows, batch_size=16, num_workers=2, shuffle=True, persistent_workers=True):
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()


if __name__ == "__main__":
    main()
