"""Lightning's Trainer over photos that a single worker decodes, scaled to one size and not changed at random."""

import pathlib
import sys

import lightning
import numpy
import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Photos(Dataset):
    def __init__(self, folder):
        self.files = sorted(pathlib.Path(folder).rglob("*.jpg"))

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        image = Image.open(self.files[index]).convert("RGB").resize((64, 64))
        return torch.from_numpy(numpy.array(image)).permute(2, 0, 1).float() / 255, index % 10


class Module(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(3, 16, 3, 2), nn.ReLU(), nn.Conv2d(16, 32, 3, 2), nn.ReLU(), nn.Flatten(), nn.Linear(32 * 225, 10)
        )

    def training_step(self, batch, index):
        x, y = batch
        return nn.functional.cross_entropy(self.net(x), y)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters())


def main():
    trainer = lightning.Trainer(
        max_epochs=int(sys.argv[2]),
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(Module(), DataLoader(Photos(sys.argv[1]), batch_size=16, shuffle=True, num_workers=1))


if __name__ == "__main__":
    main()
