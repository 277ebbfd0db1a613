"""Photos are decoded, cropped and learned by a small convolutional network: the loader sets the pace."""

import argparse
import pathlib

import torch
import torch.nn.functional as F
from PIL import Image
from torch.utils.data import DataLoader, Dataset


class Photos(Dataset):
    def __init__(self, folder):
        self.files = sorted(pathlib.Path(folder).rglob("*.jpg"))

    def __len__(self):
        return 1_000_000

    def __getitem__(self, index):
        with Image.open(self.files[index % len(self.files)]) as photo:
            small = photo.convert("RGB").resize((96, 96))
        pixels = torch.frombuffer(bytearray(small.tobytes()), dtype=torch.uint8)
        return pixels.view(96, 96, 3).permute(2, 0, 1).float() / 255, index % 10


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("photos")
    loader = DataLoader(Photos(parser.parse_args().photos), batch_size=32, num_workers=0)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 16, 5, stride=4),
        torch.nn.ReLU(),
        torch.nn.Conv2d(16, 32, 3, stride=2),
        torch.nn.ReLU(),
        torch.nn.AdaptiveAvgPool2d(1),
        torch.nn.Flatten(),
        torch.nn.Linear(32, 10),
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    for images, labels in loader:
        optimizer.zero_grad()
        F.cross_entropy(model(images), labels).backward()
        optimizer.step()


if __name__ == "__main__":
    main()
