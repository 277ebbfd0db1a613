"""In the manner of timm's train.py: a loader that prefetches, smoothed weights, accumulation over two batches with a
shorter last group, and a validation of the model and of its smoothed weights."""

from collections import OrderedDict
from contextlib import nullcontext

import torch
import torch.nn as nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from torch.utils.data import DataLoader, TensorDataset

EPOCHS, BATCH, ACCUMULATE = 2, 8, 2


class PrefetchLoader:
    """Normalizes each batch one ahead of the training, as timm's does on the device."""

    def __init__(self, loader):
        self.loader = loader
        self.mean, self.std = torch.tensor(0.45).view(1, 1, 1, 1), torch.tensor(0.22).view(1, 1, 1, 1)

    def __iter__(self):
        ahead = None
        for input, target in self.loader:
            if ahead is not None:
                yield ahead
            ahead = input.sub(self.mean).div(self.std), target
        yield ahead

    def __len__(self):
        return len(self.loader)


def create_loader(count, train):
    data = TensorDataset(torch.rand(count, 3, 24, 24), torch.randint(0, 5, (count,)))
    return PrefetchLoader(DataLoader(data, BATCH, shuffle=train, num_workers=1, persistent_workers=True))


def train_one_epoch(model, loader, optimizer, loss_fn, ema):
    model.train()
    accum_steps, last_batch_idx = ACCUMULATE, len(loader) - 1
    last_batch_idx_to_accum = len(loader) - len(loader) % accum_steps
    updates = samples = 0
    optimizer.zero_grad()
    for batch_idx, (input, target) in enumerate(loader):
        last_batch = batch_idx == last_batch_idx
        if batch_idx >= last_batch_idx_to_accum:
            accum_steps = len(loader) % ACCUMULATE
        with nullcontext():
            loss = loss_fn(model(input), target) / accum_steps
        loss.backward()
        samples += len(input)
        if not ((batch_idx + 1) % accum_steps == 0 or last_batch):
            continue
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        ema.update_parameters(model)
        updates += 1
    return updates, samples


@torch.inference_mode()
def validate(model, loader):
    model.eval()
    right = sum((model(input).argmax(1) == target).sum().item() for input, target in loader)
    return OrderedDict(top1=right)


def main():
    torch.manual_seed(42)
    model = nn.Sequential(nn.Conv2d(3, 8, 3, 2), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.LazyLinear(5))
    model(torch.zeros(2, 3, 24, 24))
    loader_train, loader_eval = create_loader(200, train=True), create_loader(40, train=False)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    ema = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.99))
    steps = samples = 0
    for epoch in range(EPOCHS):
        made = train_one_epoch(model, loader_train, optimizer, nn.CrossEntropyLoss(), ema)
        steps, samples = steps + made[0], samples + made[1]
        validate(model, loader_eval)
        validate(ema.module, loader_eval)
        torch.save({"epoch": epoch, "state_dict": model.state_dict()}, "last.pth.tar")
    print("steps", steps, "samples", samples)


if __name__ == "__main__":
    main()
