"""The model trains in double precision without anybody having wanted it.

Source: "Fix transform datatypes / speed up training", https://github.com/dingo-gw/dingo/pull/55
  (also gazprom-neft/seismiqb #19)
Cause: NumPy's default is float64; the data is, and so the model was made double() to fit it.
Fix: float32.
"""

import numpy as np
import torch
from clock import Clock, options
from torch.utils.data import DataLoader, Dataset

opts = options()
torch.manual_seed(0)
kind = np.float32 if opts.fixed else np.float64


class Waveforms(Dataset):
    def __init__(self):
        self.strain = np.random.default_rng(0).standard_normal((2048, 2, 1024)).astype(kind)

    def __len__(self):
        return 20_480

    def __getitem__(self, index):
        return self.strain[index % 2048], index % 10


loader = DataLoader(Waveforms(), batch_size=32, shuffle=True, num_workers=1)
model = torch.nn.Sequential(
    torch.nn.Conv1d(2, 32, 16, 4),
    torch.nn.ReLU(),
    torch.nn.Conv1d(32, 64, 8, 4),
    torch.nn.ReLU(),
    torch.nn.Flatten(),
    torch.nn.Linear(64 * 62, 512),
    torch.nn.ReLU(),
    torch.nn.Linear(512, 10),
)
if not opts.fixed:
    model.double()
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
