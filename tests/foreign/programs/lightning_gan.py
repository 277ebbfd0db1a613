"""Lightning's manual optimization, as its documentation shows it for a GAN: two optimizers in one training step."""

import lightning
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class GAN(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.automatic_optimization = False
        self.generator = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 8))
        self.discriminator = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
        self.batches = self.samples = 0

    def training_step(self, batch, batch_idx):
        g_opt, d_opt = self.optimizers()
        (X,) = batch
        loss = nn.functional.binary_cross_entropy_with_logits
        ones, zeros = torch.ones(len(X), 1), torch.zeros(len(X), 1)
        fake = self.generator(torch.randn(len(X), 4))

        errD = loss(self.discriminator(X), ones) + loss(self.discriminator(fake.detach()), zeros)
        d_opt.zero_grad()
        self.manual_backward(errD)
        d_opt.step()

        errG = loss(self.discriminator(fake), ones)
        g_opt.zero_grad()
        self.manual_backward(errG)
        g_opt.step()
        self.batches += 1
        self.samples += len(X)

    def configure_optimizers(self):
        g_opt = torch.optim.Adam(self.generator.parameters(), lr=1e-3)
        return g_opt, torch.optim.Adam(self.discriminator.parameters(), lr=1e-3)


module = GAN()
trainer = lightning.Trainer(
    max_epochs=2,
    accelerator="cpu",
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
)
trainer.fit(module, DataLoader(TensorDataset(torch.randn(330, 8)), batch_size=8, shuffle=True))
print("steps", module.batches, "samples", module.samples)
