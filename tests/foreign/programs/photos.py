"""A folder of photos through torchvision."""

import os

import numpy
import torch
import torchvision
from PIL import Image
from torch.utils.data import DataLoader
from torchvision import transforms

numpy.random.seed(0)
for kind in ("cat", "dog"):
    os.makedirs(f"photos/{kind}", exist_ok=True)
    for i in range(60):
        Image.fromarray(numpy.random.randint(0, 255, (48, 48, 3), dtype="uint8")).save(f"photos/{kind}/{i}.jpg")
folder = torchvision.datasets.ImageFolder("photos", transforms.Compose([transforms.Resize(32), transforms.ToTensor()]))
loader = DataLoader(folder, batch_size=8, shuffle=True, num_workers=2)
model = torchvision.models.squeezenet1_1(num_classes=2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
steps = samples = 0
for _epoch in range(2):
    for x, y in loader:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        steps += 1
        samples += len(x)
print("steps", steps, "samples", samples)
