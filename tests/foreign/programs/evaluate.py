"""An evaluation over a loader, as pytorch/examples' imagenet does with --evaluate: a batch is a step."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main():
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(330, 32), torch.randint(0, 4, (330,)))
    model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 4))
    criterion = nn.CrossEntropyLoss()
    model.eval()
    steps = samples = right = 0
    with torch.no_grad():
        for images, target in DataLoader(data, batch_size=8, num_workers=1):
            output = model(images)
            criterion(output, target).item()
            right += (output.argmax(1) == target).sum().item()
            steps += 1
            samples += images.size(0)
    print("accuracy", right / samples)
    print("steps", steps, "samples", samples)


if __name__ == "__main__":
    main()
