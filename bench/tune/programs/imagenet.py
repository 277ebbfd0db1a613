"""In the manner of pytorch/examples' imagenet: photos cropped and mirrored at random."""

import argparse
import pathlib
import random

import numpy
import torch
import torch.nn as nn
from PIL import Image
from torch.utils.data import DataLoader, Dataset


class Folder(Dataset):
    def __init__(self, folder):
        self.files = sorted(pathlib.Path(folder).rglob("*.jpg"))
        names = sorted({file.parent.name for file in self.files})
        self.labels = [names.index(file.parent.name) for file in self.files]

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        image = Image.open(self.files[index]).convert("RGB").resize((80, 80))
        left, top = random.randrange(16), random.randrange(16)
        image = image.crop((left, top, left + 64, top + 64))
        if random.random() < 0.5:
            image = image.transpose(Image.FLIP_LEFT_RIGHT)
        return torch.from_numpy(numpy.array(image)).permute(2, 0, 1).float() / 255, self.labels[index]


def train(train_loader, model, criterion, optimizer):
    model.train()
    for images, target in train_loader:
        loss = criterion(model(images), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("data")
    parser.add_argument("-j", "--workers", default=0, type=int)
    parser.add_argument("--epochs", default=30, type=int)
    parser.add_argument("-b", "--batch-size", default=16, type=int)
    args = parser.parse_args()
    torch.manual_seed(1)
    random.seed(1)
    model = nn.Sequential(
        nn.Conv2d(3, 16, 3, 2), nn.ReLU(), nn.Conv2d(16, 32, 3, 2), nn.ReLU(), nn.Flatten(), nn.Linear(32 * 225, 10)
    )
    optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9, weight_decay=1e-4)
    train_loader = DataLoader(Folder(args.data), batch_size=args.batch_size, shuffle=True, num_workers=args.workers)
    for _ in range(args.epochs):
        train(train_loader, model, nn.CrossEntropyLoss(), optimizer)


if __name__ == "__main__":
    main()
