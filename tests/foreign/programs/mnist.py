"""In the manner of pytorch/examples' mnist: training and a test pass each epoch."""

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.optim.lr_scheduler import StepLR
from torch.utils.data import DataLoader, TensorDataset

steps = samples = 0


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, 1)
        self.dropout1 = nn.Dropout(0.25)
        self.fc1 = nn.Linear(8 * 13 * 13, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        return F.log_softmax(self.fc1(torch.flatten(self.dropout1(x), 1)), dim=1)


def train(model, train_loader, optimizer):
    global steps, samples
    model.train()
    for data, target in train_loader:
        optimizer.zero_grad()
        loss = F.nll_loss(model(data), target)
        loss.backward()
        optimizer.step()
        steps += 1
        samples += len(data)


def test(model, test_loader):
    model.eval()
    test_loss = 0
    with torch.no_grad():
        for data, target in test_loader:
            test_loss += F.nll_loss(model(data), target, reduction="sum").item()
    print("test loss", test_loss / len(test_loader.dataset))


def main():
    torch.manual_seed(1)
    digits = [TensorDataset(torch.randn(n, 1, 28, 28), torch.randint(0, 10, (n,))) for n in (330, 100)]
    train_loader = DataLoader(digits[0], batch_size=16, shuffle=True, num_workers=1)
    test_loader = DataLoader(digits[1], batch_size=50)
    model = Net()
    optimizer = optim.Adadelta(model.parameters(), lr=1.0)
    scheduler = StepLR(optimizer, step_size=1, gamma=0.7)
    for _ in range(2):
        train(model, train_loader, optimizer)
        test(model, test_loader)
        scheduler.step()
    torch.save(model.state_dict(), "mnist_cnn.pt")
    print("steps", steps, "samples", samples)


if __name__ == "__main__":
    main()
