"""In the manner of pytorch/examples' vae: an encoder and a decoder as methods beside `forward`."""

import torch
from torch import nn, optim
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(784, 64)
        self.fc21 = nn.Linear(64, 8)
        self.fc22 = nn.Linear(64, 8)
        self.fc3 = nn.Linear(8, 64)
        self.fc4 = nn.Linear(64, 784)

    def encode(self, x):
        h1 = F.relu(self.fc1(x))
        return self.fc21(h1), self.fc22(h1)

    def decode(self, z):
        return torch.sigmoid(self.fc4(F.relu(self.fc3(z))))

    def forward(self, x):
        mu, logvar = self.encode(x.view(-1, 784))
        return self.decode(mu + torch.randn_like(mu) * torch.exp(0.5 * logvar)), mu, logvar


torch.manual_seed(1)
loader = DataLoader(TensorDataset(torch.rand(300, 1, 28, 28), torch.zeros(300)), batch_size=32, shuffle=True)
model = VAE()
optimizer = optim.Adam(model.parameters(), lr=1e-3)
steps = samples = 0
for _ in range(4):
    model.train()
    for data, _ in loader:
        optimizer.zero_grad()
        recon, mu, logvar = model(data)
        loss = F.binary_cross_entropy(recon, data.view(-1, 784), reduction="sum")
        (loss - 0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())).backward()
        optimizer.step()
        steps += 1
        samples += data.size(0)
    with torch.no_grad():
        sample = model.decode(torch.randn(64, 8))
        print("mean of a sample", sample.mean().item())
print("steps", steps, "samples", samples)
