"""After pytorch/examples' dcgan: a discriminator and a generator, each with its optimizer; a batch is a step."""

import torch
import torch.nn as nn
import torch.optim as optim
from torch.utils.data import DataLoader, TensorDataset


def weights_init(m):
    if m.__class__.__name__.find("Conv") != -1:
        torch.nn.init.normal_(m.weight, 0.0, 0.02)


if __name__ == "__main__":
    torch.manual_seed(2)
    nz = 16
    dataset = TensorDataset(torch.randn(330, 3, 16, 16), torch.zeros(330))
    dataloader = DataLoader(dataset, batch_size=16, shuffle=True, num_workers=1)
    netG = nn.Sequential(
        nn.ConvTranspose2d(nz, 16, 4, 1, 0, bias=False),
        nn.BatchNorm2d(16),
        nn.ReLU(True),
        nn.ConvTranspose2d(16, 3, 4, 4, 0, bias=False),
        nn.Tanh(),
    )
    netD = nn.Sequential(
        nn.Conv2d(3, 16, 4, 4, 0, bias=False), nn.LeakyReLU(0.2), nn.Conv2d(16, 1, 4), nn.Flatten(0), nn.Sigmoid()
    )
    netG.apply(weights_init)
    netD.apply(weights_init)
    criterion = nn.BCELoss()
    optimizerD = optim.Adam(netD.parameters(), lr=2e-4, betas=(0.5, 0.999))
    optimizerG = optim.Adam(netG.parameters(), lr=2e-4, betas=(0.5, 0.999))
    steps = samples = 0
    for _ in range(2):
        for data, _ in dataloader:
            netD.zero_grad()
            label = torch.full((data.size(0),), 1.0)
            errD_real = criterion(netD(data), label)
            errD_real.backward()
            fake = netG(torch.randn(data.size(0), nz, 1, 1))
            label.fill_(0.0)
            errD_fake = criterion(netD(fake.detach()), label)
            errD_fake.backward()
            optimizerD.step()

            netG.zero_grad()
            label.fill_(1.0)
            errG = criterion(netD(fake), label)
            errG.backward()
            optimizerG.step()
            steps += 1
            samples += data.size(0)
        torch.save(netG.state_dict(), "netG.pth")
    print("steps", steps, "samples", samples)
