"""Rows of a data frame are slow to get.

Source: "Faster dataset __getitem__, use workers", https://github.com/WorldCereal/presto-worldcereal/pull/9
  (also braindecode/braindecode #89: a factor of 7)
Cause: df.iloc[i], and then one lookup in the Series for each column.
Fix: NumPy arrays made once.
"""

import numpy as np
import pandas
import torch
from clock import Clock, options
from torch.utils.data import DataLoader, Dataset

opts = options()
torch.manual_seed(0)


class Crops(Dataset):
    def __init__(self):
        noise = np.random.default_rng(0)
        self.bands = [f"B{band}-{month}" for band in range(6) for month in range(12)]
        self.table = pandas.DataFrame(noise.standard_normal((50_000, 72)), columns=self.bands)
        self.table["crop"] = np.arange(50_000) % 10
        self.x = self.table[self.bands].to_numpy(np.float32).reshape(-1, 6, 12)
        self.y = self.table["crop"].to_numpy()

    def __len__(self):
        return len(self.table)

    def __getitem__(self, index):
        if opts.fixed:
            return self.x[index], self.y[index]
        row = self.table.iloc[index]
        values = np.array([row[band] for band in self.bands], dtype=np.float32)
        return values.reshape(6, 12), int(row["crop"])


loader = DataLoader(Crops(), batch_size=64, shuffle=True)
model = torch.nn.Sequential(
    torch.nn.Conv1d(6, 128, 3, padding=1),
    torch.nn.ReLU(),
    torch.nn.Conv1d(128, 256, 3, padding=1),
    torch.nn.ReLU(),
    torch.nn.Flatten(),
    torch.nn.Linear(3072, 256),
    torch.nn.ReLU(),
    torch.nn.Linear(256, 10),
)
optimizer = torch.optim.Adam(model.parameters())
clock = Clock(opts.seconds)
over = False
while not over:
    for x, labels in loader:
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x), labels)
        loss.backward()
        optimizer.step()
        over = clock.done(len(labels), loss)
        if over:
            break
clock.rate()
