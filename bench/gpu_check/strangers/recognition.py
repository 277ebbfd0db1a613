"""Pictures that are recognised: clips, objects, and views of the same picture."""

from __future__ import annotations

import gc
import itertools
import math
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from programs import WAYS, Training
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset

from strangers.batches import forever, prefetched


class ClipClassifier(nn.Module):
    """Every frame through a network for images, and the mean over a clip."""

    def __init__(self) -> None:
        import timm

        super().__init__()
        self.frames = timm.create_model("resnet18", pretrained=False, num_classes=0)
        self.head = nn.Linear(self.frames.num_features, 400)

    def forward(self, clips: torch.Tensor) -> torch.Tensor:
        return self.head(self.frames(clips.flatten(0, 1)).unflatten(0, clips.shape[:2]).mean(1))


class Video(Training):
    """Clips with mixed precision and a GradScaler. They are decoded already, so that a batch costs only its copy."""

    @dataclass(frozen=True)
    class Options:
        batch: int = 16
        precision: str = "fp16"
        optimizer: str = "foreach"
        pinned: bool = False
        side_stream: bool = False  # and pinned
        as_bytes: bool = False
        read_norm: bool = True  # of the gradient, for a log

    def __init__(self, options: Options, device: str) -> None:
        super().__init__(options, device)
        real = device == "cuda"
        self.model = ClipClassifier().to(device)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4, **WAYS[options.optimizer])
        self.scaler = torch.amp.GradScaler(device, enabled=options.precision == "fp16" and real)
        shape = (options.batch, 16, 3, 112, 112) if real else (2, 2, 3, 32, 32)
        generator = np.random.default_rng(0)
        pins = real and (options.pinned or options.side_stream)
        ready = []
        for _ in range(4):
            clips = torch.from_numpy(generator.integers(0, 256, shape, dtype=np.uint8))
            batch = (clips if options.as_bytes else clips.float() / 255, torch.randint(0, 400, shape[:1]))
            ready.append(tuple(part.pin_memory() for part in batch) if pins else batch)
        host = itertools.cycle(ready)
        on_side = options.side_stream and real
        self.batches = prefetched(host) if on_side else self.copied(host)
        self.norms: deque[float] = deque(maxlen=100)

    def copied(self, batches: Iterable[tuple[torch.Tensor, ...]]) -> Iterator[tuple[torch.Tensor, ...]]:
        for batch in batches:
            yield tuple(part.to(self.device, non_blocking=self.options.pinned) for part in batch)

    def step(self) -> None:
        clips, labels = next(self.batches)
        if clips.dtype == torch.uint8:
            clips = clips.float() / 255
        self.optimizer.zero_grad(set_to_none=True)
        with self.autocast():
            self.loss = functional.cross_entropy(self.model(clips), labels)
        self.scaler.scale(self.loss).backward()
        self.scaler.unscale_(self.optimizer)
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        if self.options.read_norm:
            self.norms.append(norm.item())


class Detection(Training):
    """Faster R-CNN, after the reference script of torchvision. Its model reads back from the device many times a step,
    which no option changes."""

    @dataclass(frozen=True)
    class Options:
        batch: int = 4
        precision: str = "fp32"
        collect: bool = True  # gc.collect() after each step, in the hope of memory
        empty_cache: bool = True  # likewise

    def __init__(self, options: Options, device: str) -> None:
        from torchvision.models.detection import fasterrcnn_mobilenet_v3_large_320_fpn

        super().__init__(options, device)
        size, batch, regions = (320, options.batch, 512) if device == "cuda" else (64, 1, 8)
        self.model = fasterrcnn_mobilenet_v3_large_320_fpn(
            weights=None,
            weights_backbone=None,
            num_classes=91,
            min_size=size,
            max_size=2 * size,
            box_batch_size_per_image=regions,
        ).to(device)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-4, momentum=0.9, weight_decay=5e-4)
        self.batches = itertools.cycle([self.made(batch, size) for _ in range(4)])

    @staticmethod
    def made(batch: int, size: int) -> tuple[list[torch.Tensor], list[dict[str, torch.Tensor]]]:
        images, targets = [torch.rand(3, size, size) for _ in range(batch)], []
        for _ in images:
            corners = torch.rand(8, 2) * size * 0.6
            boxes = torch.cat([corners, corners + size * (0.1 + 0.3 * torch.rand(8, 2))], 1)
            targets.append({"boxes": boxes, "labels": torch.randint(1, 91, (8,))})
        return images, targets

    def step(self) -> None:
        images, targets = next(self.batches)
        images = [image.to(self.device) for image in images]
        targets = [{name: part.to(self.device) for name, part in target.items()} for target in targets]
        with self.autocast():
            self.loss = sum(self.model(images, targets).values())
        if not math.isfinite(self.loss.item()):
            raise FloatingPointError("the loss is not finite")
        self.optimizer.zero_grad()
        self.loss.backward()
        self.optimizer.step()
        if self.options.collect:
            gc.collect()
        if self.options.empty_cache and self.device == "cuda":
            torch.cuda.empty_cache()


class TwoViews(Dataset):
    """Two random views of each image, made on the host by torchvision."""

    def __init__(self, size: int) -> None:
        from PIL import Image
        from torchvision import transforms

        generator = np.random.default_rng(0)
        self.images = [Image.fromarray(generator.integers(0, 256, (size, size, 3), dtype=np.uint8)) for _ in range(256)]
        self.view = transforms.Compose(
            [
                transforms.RandomResizedCrop(size, scale=(0.2, 1.0)),
                transforms.RandomHorizontalFlip(),
                transforms.RandomApply([transforms.ColorJitter(0.4, 0.4, 0.4, 0.1)], p=0.8),
                transforms.RandomGrayscale(p=0.2),
                transforms.ToTensor(),
                transforms.Normalize((0.49, 0.48, 0.45), (0.25, 0.24, 0.26)),
            ]
        )

    def __len__(self) -> int:
        return 50_000

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        image = self.images[index % len(self.images)]
        return self.view(image), self.view(image)


class SimClr(Training):
    """Contrastive learning on images of CIFAR's size."""

    @dataclass(frozen=True)
    class Options:
        batch: int = 64
        precision: str = "fp32"
        workers: int = 0
        pinned: bool = False

    def __init__(self, options: Options, device: str) -> None:
        from torchvision.models import resnet18

        super().__init__(options, device)
        real = device == "cuda"
        size, batch = (32, options.batch) if real else (8, 2)
        network = resnet18(weights=None)
        network.conv1, network.maxpool = nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.Identity()
        network.fc = nn.Sequential(nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 128))
        self.model = network.to(device)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=3e-4, weight_decay=1e-6)
        how = {"num_workers": options.workers, "persistent_workers": options.workers > 0}
        pins = options.pinned and real
        self.batches = forever(DataLoader(TwoViews(size), batch, True, drop_last=True, pin_memory=pins, **how))

    def step(self) -> None:
        views = torch.cat([view.to(self.device, non_blocking=self.options.pinned) for view in next(self.batches)])
        with self.autocast():
            found = functional.normalize(self.model(views), dim=1)
            alike = found @ found.T / 0.5
        alike = alike.float().masked_fill(torch.eye(len(views), dtype=torch.bool, device=self.device), -1e9)
        partner = torch.arange(len(views), device=self.device).roll(len(views) // 2)
        self.loss = functional.cross_entropy(alike, partner)
        self.optimizer.zero_grad()
        self.loss.backward()
        self.optimizer.step()
