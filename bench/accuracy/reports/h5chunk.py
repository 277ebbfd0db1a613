"""Random samples from an HDF5 file are slow.

Source: "How to accelerate reading from hdf5", https://github.com/h5py/h5py/issues/2568
  (also #1391, rwth-i6/returnn #560)
Cause: a chunk holds many samples; for each single one the whole chunk is read and decompressed.
Fix: chunks of one sample.
"""

import os
import tempfile

import h5py
import numpy as np
import torch
from clock import Clock, options
from torch.utils.data import DataLoader, Dataset

opts = options()
torch.manual_seed(0)
PATH = os.path.join(tempfile.gettempdir(), f"h5chunk-{'one' if opts.fixed else 'many'}.h5")
if not os.path.exists(PATH):
    with h5py.File(PATH + ".part", "w") as file:
        images = file.create_dataset(
            "images",
            (1536, 3, 64, 64),
            "u1",
            chunks=(1 if opts.fixed else 12, 3, 64, 64),
            compression="gzip",
            compression_opts=4,
        )
        noise = np.random.default_rng(0)
        for begin in range(0, 1536, 12):
            images[begin : begin + 12] = noise.integers(0, 64, (12, 3, 64, 64), dtype=np.uint8)
    os.rename(PATH + ".part", PATH)


class Images(Dataset):
    def __init__(self):
        self.file = None

    def __len__(self):
        return 1536

    def __getitem__(self, index):
        if self.file is None:
            self.file = h5py.File(PATH, "r")["images"]
        return self.file[index].astype(np.float32) / 64, index % 10


loader = DataLoader(Images(), batch_size=32, shuffle=True, num_workers=1, persistent_workers=True)
model = torch.nn.Sequential(
    torch.nn.Conv2d(3, 32, 5, 2),
    torch.nn.ReLU(),
    torch.nn.Conv2d(32, 48, 3, 2),
    torch.nn.ReLU(),
    torch.nn.AdaptiveAvgPool2d(4),
    torch.nn.Flatten(),
    torch.nn.Linear(768, 10),
)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
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
