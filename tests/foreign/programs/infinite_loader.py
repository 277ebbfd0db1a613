"""In the manner of ultralytics and YOLOv5: a DataLoader that keeps one iterator for all epochs, and batches in which
the boxes of all images are one tensor. The first batch has as many boxes as images."""

import torch
from torch.utils.data import DataLoader, Dataset

EPOCHS, BATCH = 3, 8


class RepeatSampler:
    def __init__(self, sampler):
        self.sampler = sampler

    def __iter__(self):
        while True:
            yield from iter(self.sampler)


class InfiniteDataLoader(DataLoader):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        object.__setattr__(self, "batch_sampler", RepeatSampler(self.batch_sampler))
        self.iterator = None

    def __len__(self):
        return len(self.batch_sampler.sampler)

    def __iter__(self):
        if self.iterator is None:
            self.iterator = self._get_iterator()
        for _ in range(len(self)):
            yield next(self.iterator)


class Boxes(Dataset):
    def __len__(self):
        return 44

    def __getitem__(self, index):
        count = 1 if index < BATCH else 2
        return {"batch_idx": torch.zeros(count), "bboxes": torch.rand(count, 4), "img": torch.rand(3, 24, 24)}

    @staticmethod
    def collate_fn(samples):
        batch = {key: torch.cat([sample[key] for sample in samples]) for key in ("batch_idx", "bboxes")}
        batch["img"] = torch.stack([sample["img"] for sample in samples])
        return batch


def loader(workers):
    return InfiniteDataLoader(Boxes(), BATCH, num_workers=workers, collate_fn=Boxes.collate_fn)


train, val = loader(1), loader(0)
model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3, 2), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(968, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
steps = samples = 0
for _epoch in range(EPOCHS):
    for batch in train:
        optimizer.zero_grad()
        (model(batch["img"]).mean(0) - batch["bboxes"].mean(0)).square().sum().backward()
        optimizer.step()
        steps += 1
        samples += len(batch["img"])
    with torch.no_grad():
        for batch in val:
            model(batch["img"])
print("steps", steps, "samples", samples)
