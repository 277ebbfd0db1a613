"""Training programs as people write them with other people's libraries, of kinds that programs.py does not have.

    programs.py bert-finetune read_loss=0 --seconds 8    trains one
    cures.py bert-finetune DIRECTORY                     measures what its cures bring

They are a test for what fullbore says of programs that it was not made with, and were written without looking at how
it judges. A program's options are its faults and their cures; as it is by default it has at least one fault. Data are
random and made in memory. Libraries are imported by the programs that need them: any may be missing.
"""

from __future__ import annotations

import copy
import gc
import itertools
import math
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import torch
from programs import WAYS, Training
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset

T = TypeVar("T")


def forever(batches: Iterable[T]) -> Iterator[T]:
    """Epoch after epoch. A DataLoader shuffles again for each."""
    while True:
        yield from batches


class BertFinetune(Training):
    """A sentence classifier of BERT's base size, after the course of Hugging Face."""

    @dataclass(frozen=True)
    class Options:
        batch: int = 32
        precision: str = "fp32"
        optimizer: str = "foreach"
        padded: bool = True  # sentences of all lengths, padded to the longest that is allowed; else all are so long
        read_loss: bool = True
        workers: int = 0
        pinned: bool = False

    def __init__(self, options: Options, device: str) -> None:
        from transformers import BertConfig, BertForSequenceClassification, get_scheduler

        super().__init__(options, device)
        real = device == "cuda"
        self.length, self.batch = (128, options.batch) if real else (16, 2)
        small = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
        config = BertConfig(num_labels=2, **({} if real else small))
        self.model = BertForSequenceClassification(config).to(device).train()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=2e-5, **WAYS[options.optimizer])
        self.schedule = get_scheduler("linear", self.optimizer, num_warmup_steps=100, num_training_steps=1_000_000)
        self.total = 0.0
        generator = np.random.default_rng(0)
        lengths = generator.integers(8, self.length + 1, 20_000) if options.padded else [self.length] * 20_000
        sentences = [generator.integers(1000, 30_000, length) for length in lengths]
        examples = [(sentence, int(sentence[0]) % 2) for sentence in sentences]
        loader = DataLoader(
            examples,
            self.batch,
            shuffle=True,
            drop_last=True,
            collate_fn=self.collate,
            num_workers=options.workers,
            persistent_workers=options.workers > 0,
            pin_memory=options.pinned and real,
        )
        self.batches = forever(loader)

    def collate(self, examples: list[tuple[np.ndarray, int]]) -> dict[str, torch.Tensor]:
        """As a tokenizer's padding="max_length"."""
        tokens = np.zeros((len(examples), self.length), dtype=np.int64)
        for row, (sentence, _) in zip(tokens, examples):
            row[: len(sentence)] = sentence
        batch = {"input_ids": torch.from_numpy(tokens), "labels": torch.tensor([label for _, label in examples])}
        if self.options.padded:
            batch["attention_mask"] = (batch["input_ids"] != 0).long()
        return batch

    def step(self) -> None:
        batch = next(self.batches)
        batch = {name: part.to(self.device, non_blocking=self.options.pinned) for name, part in batch.items()}
        with self.autocast():
            self.loss = self.model(**batch).loss
        self.loss.backward()
        self.optimizer.step()
        self.schedule.step()
        self.optimizer.zero_grad()
        if self.options.read_loss:
            self.total += self.loss.item()


class ClipClassifier(nn.Module):
    """Every frame through a network for images, and the mean over a clip."""

    def __init__(self) -> None:
        import timm

        super().__init__()
        self.frames = timm.create_model("resnet18", pretrained=False, num_classes=0)
        self.head = nn.Linear(self.frames.num_features, 400)

    def forward(self, clips: torch.Tensor) -> torch.Tensor:
        return self.head(self.frames(clips.flatten(0, 1)).unflatten(0, clips.shape[:2]).mean(1))


def prefetched(batches: Iterator[tuple[torch.Tensor, ...]]) -> Iterator[tuple[torch.Tensor, ...]]:
    """Each batch is copied while the one before it trains: the data_prefetcher of NVIDIA's examples."""
    stream = torch.cuda.Stream()

    def copied() -> tuple[torch.Tensor, ...]:
        with torch.cuda.stream(stream):
            return tuple(part.to("cuda", non_blocking=True) for part in next(batches))

    coming = copied()
    while True:
        torch.cuda.current_stream().wait_stream(stream)
        batch = coming
        for part in batch:
            part.record_stream(torch.cuda.current_stream())
        coming = copied()
        yield batch


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


class LanguageLstm(nn.Module):
    def __init__(self, words: int, width: int) -> None:
        super().__init__()
        self.dropout, self.embedding = nn.Dropout(0.2), nn.Embedding(words, width)
        self.lstm, self.head = nn.LSTM(width, width, 2, dropout=0.2), nn.Linear(width, words)
        self.head.weight = self.embedding.weight

    def forward(self, tokens: torch.Tensor, state: Any) -> tuple[torch.Tensor, Any]:
        out, state = self.lstm(self.dropout(self.embedding(tokens)), state)
        return self.head(self.dropout(out)).flatten(0, 1), state


class LstmLanguage(Training):
    """torch's word language model: truncated backpropagation, and no optimizer but a line. The norms are for a log."""

    @dataclass(frozen=True)
    class Options:
        batch: int = 20
        precision: str = "fp32"
        optimizer: str = "lines"  # written out, or fused
        log_norms: bool = True  # of each parameter's gradient
        read_loss: bool = True

    def __init__(self, options: Options, device: str) -> None:
        super().__init__(options, device)
        words, width, self.span, batch = (33_278, 650, 35, options.batch) if device == "cuda" else (200, 16, 5, 2)
        self.model = LanguageLstm(words, width).to(device)
        self.optimizer = None
        if options.optimizer == "fused":
            self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.5, fused=True)
        self.text = torch.randint(0, words, (100 * self.span + 1, batch), device=device)
        self.state, self.at, self.total = None, 0, 0.0
        self.norms: dict[str, float] = {}

    def step(self) -> None:
        tokens = self.text[self.at : self.at + self.span]
        targets = self.text[self.at + 1 : self.at + 1 + self.span].flatten()
        self.at = (self.at + self.span) % (100 * self.span)
        if self.state is not None:
            self.state = tuple(part.detach() for part in self.state)
        self.model.zero_grad()
        with self.autocast():
            out, self.state = self.model(tokens, self.state)
            self.loss = functional.cross_entropy(out, targets)
        self.loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 0.25)
        if self.options.log_norms:
            for name, parameter in self.model.named_parameters():
                self.norms[name] = parameter.grad.norm().item()
        if self.optimizer:
            self.optimizer.step()
        else:
            for parameter in self.model.parameters():
                parameter.data.add_(parameter.grad, alpha=-0.5)
        if self.options.read_loss:
            self.total += self.loss.item()


class Gnn(Training):
    """Classes of molecules by a graph isomorphism network, after torch_geometric's example. Batches are put together
    by the loader; how many graphs are in one is read back from the device, in the library."""

    @dataclass(frozen=True)
    class Options:
        batch: int = 128
        precision: str = "fp32"
        workers: int = 0
        validate_every: int = 10  # steps; 0: never
        validated: int = 20  # batches each time

    def __init__(self, options: Options, device: str) -> None:
        from torch_geometric.data import Data
        from torch_geometric.loader import DataLoader as GraphLoader
        from torch_geometric.nn import MLP, GINConv, global_add_pool

        super().__init__(options, device)
        real = device == "cuda"
        width, batch = (128, options.batch) if real else (16, 8)
        generator = np.random.default_rng(0)

        def molecule() -> Data:
            atoms = int(generator.integers(12, 36))
            edges = torch.from_numpy(generator.integers(0, atoms, (2, 2 * atoms)))
            features = torch.from_numpy(generator.standard_normal((atoms, 16), dtype=np.float32))
            return Data(x=features, edge_index=edges, y=torch.tensor([atoms % 2]))

        class Gin(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                sizes = [16, *[width] * 5]
                self.layers = nn.ModuleList([GINConv(MLP([a, width, width])) for a in sizes[:-1]])
                self.head = MLP([width, width, 2], norm=None, dropout=0.5)

            def forward(self, x: torch.Tensor, edges: torch.Tensor, graph: torch.Tensor) -> torch.Tensor:
                for layer in self.layers:
                    x = layer(x, edges).relu()
                return self.head(global_add_pool(x, graph))

        molecules = [molecule() for _ in range(512 if real else 64)]
        self.model = Gin().to(device)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-3)
        how = {"num_workers": options.workers, "persistent_workers": options.workers > 0}
        self.batches = forever(GraphLoader(molecules * 100, batch, shuffle=True, drop_last=True, **how))
        validated = options.validated if real else 2
        self.held_out = GraphLoader((molecules * 10)[: validated * batch], batch)
        self.total, self.accuracy = 0.0, 0.0

    def step(self) -> None:
        batch = next(self.batches).to(self.device)
        self.optimizer.zero_grad()
        with self.autocast():
            self.loss = functional.cross_entropy(self.model(batch.x, batch.edge_index, batch.batch), batch.y)
        self.loss.backward()
        self.optimizer.step()
        self.total += self.loss.item() * batch.num_graphs
        self.steps += 1
        if self.options.validate_every and self.steps % self.options.validate_every == 0:
            self.validate()

    @torch.no_grad()
    def validate(self) -> None:
        self.model.eval()
        right, of = 0, 0
        for batch in self.held_out:
            batch = batch.to(self.device)
            guess = self.model(batch.x, batch.edge_index, batch.batch).argmax(-1)
            right, of = right + int((guess == batch.y).sum()), of + batch.num_graphs
        self.accuracy = right / of
        self.model.train()


class ResidualBlock(nn.Module):
    def __init__(self, inner: int, outer: int, time: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.GroupNorm(8, inner), nn.GroupNorm(8, outer)
        self.conv1, self.conv2 = nn.Conv2d(inner, outer, 3, 1, 1), nn.Conv2d(outer, outer, 3, 1, 1)
        self.time = nn.Linear(time, outer)
        self.skip = nn.Conv2d(inner, outer, 1) if inner != outer else nn.Identity()

    def forward(self, x: torch.Tensor, time: torch.Tensor) -> torch.Tensor:
        y = self.conv1(functional.silu(self.norm1(x))) + self.time(functional.silu(time))[:, :, None, None]
        return self.conv2(functional.silu(self.norm2(y))) + self.skip(x)


class PixelAttention(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.GroupNorm(8, width)
        self.to_all, self.out = nn.Conv2d(width, 3 * width, 1), nn.Conv2d(width, width, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.to_all(self.norm(x)).flatten(2).transpose(1, 2).unsqueeze(1).chunk(3, -1)
        y = functional.scaled_dot_product_attention(q, k, v)
        return x + self.out(y.squeeze(1).transpose(1, 2).reshape(x.shape))


class Unet(nn.Module):
    """As DDPM's for 32 by 32 pixels: three resolutions, two blocks at each, attention at the lower two."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width, time = width, 4 * width
        widths = (width, 2 * width, 2 * width)
        self.time = nn.Sequential(nn.Linear(width, time), nn.SiLU(), nn.Linear(time, time))
        self.first, self.last = nn.Conv2d(3, width, 3, 1, 1), nn.Conv2d(width, 3, 3, 1, 1)
        self.norm = nn.GroupNorm(8, width)
        self.down, self.up, self.attentions = nn.ModuleList(), nn.ModuleList(), nn.ModuleList()
        self.shrink, self.grow = nn.ModuleList(), nn.ModuleList()
        inner, kept = width, [width]
        for level, outer in enumerate(widths):
            for _ in range(2):
                self.down.append(ResidualBlock(inner, outer, time))
                self.attentions.append(PixelAttention(outer) if level else nn.Identity())
                inner = outer
                kept.append(inner)
            self.shrink.append(nn.Conv2d(inner, inner, 3, 2, 1) if level < 2 else nn.Identity())
        self.middle = ResidualBlock(inner, inner, time)
        for level, outer in reversed(list(enumerate(widths))):
            for _ in range(2):
                self.up.append(ResidualBlock(inner + kept.pop(), outer, time))
                inner = outer
            self.grow.append(nn.Conv2d(inner, inner, 3, 1, 1) if level else nn.Identity())

    def forward(self, x: torch.Tensor, when: torch.Tensor) -> torch.Tensor:
        half = self.width // 2
        rates = torch.exp(torch.arange(half, device=x.device) * (-math.log(10_000) / half))
        angles = when[:, None].float() * rates
        time = self.time(torch.cat([angles.sin(), angles.cos()], 1))
        x = self.first(x)
        kept = []
        for at, (block, attention) in enumerate(zip(self.down, self.attentions)):
            x = attention(block(x, time))
            kept.append(x)
            if at % 2:
                x = self.shrink[at // 2](x)
        x = self.middle(x, time)
        for at, block in enumerate(self.up):
            x = block(torch.cat([x, kept.pop()], 1), time)
            if at in (1, 3):
                x = self.grow[at // 2](functional.interpolate(x, scale_factor=2.0))
        return self.last(functional.silu(self.norm(x)))


class Diffusion(Training):
    """Denoises small images, and keeps a moving mean of the weights, parameter by parameter."""

    @dataclass(frozen=True)
    class Options:
        batch: int = 32
        precision: str = "fp32"
        optimizer: str = "foreach"
        graphed: bool = False
        read_loss: bool = True  # for the progress bar

    def __init__(self, options: Options, device: str) -> None:
        super().__init__(options, device)
        real = device == "cuda"
        size, width, batch = (32, 128, options.batch) if real else (8, 8, 2)
        self.model = Unet(width).to(device)
        self.mean = copy.deepcopy(self.model).requires_grad_(False)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=2e-4, **WAYS[options.optimizer])
        self.kept = torch.cumprod(1 - torch.linspace(1e-4, 0.02, 1000, device=device), 0)
        self.images = torch.rand(64, batch, 3, size, size, device=device) * 2 - 1
        self.denoise = self.model
        if options.graphed and real:
            example = torch.randn_like(self.images[0]), torch.zeros(batch, dtype=torch.long, device=device)
            self.denoise = torch.cuda.make_graphed_callables(self.model, example)

    def step(self) -> None:
        images = self.images[self.steps % len(self.images)]
        self.steps += 1
        when = torch.randint(0, 1000, (len(images),), device=self.device)
        noise = torch.randn_like(images)
        kept = self.kept[when][:, None, None, None]
        noisy = kept.sqrt() * images + (1 - kept).sqrt() * noise
        self.optimizer.zero_grad()
        with self.autocast():
            self.loss = functional.mse_loss(self.denoise(noisy, when).float(), noise)
        self.loss.backward()
        self.optimizer.step()
        with torch.no_grad():
            for mean, now in zip(self.mean.parameters(), self.model.parameters()):
                mean.mul_(0.9999).add_(now, alpha=1e-4)
        if self.options.read_loss:
            self.loss.item()


class Replay:
    """Transitions of an Atari game in numpy, drawn by priority."""

    def __init__(self, capacity: int, side: int) -> None:
        self.generator = np.random.default_rng(0)
        self.frames = self.generator.integers(0, 256, (capacity, side, side), dtype=np.uint8)
        self.actions = self.generator.integers(0, 6, capacity)
        self.rewards = self.generator.standard_normal(capacity).astype(np.float32)
        self.priorities = np.ones(capacity - 5)

    def drawn(self, batch: int) -> tuple[np.ndarray, ...]:
        chances = self.priorities**0.6
        at = self.generator.choice(len(chances), batch, p=chances / chances.sum())
        stack = at[:, None] + np.arange(4)
        return at, self.frames[stack], self.frames[stack + 1], self.actions[at + 3], self.rewards[at + 3]


class Dqn(Training):
    """The learner of a double deep Q-network."""

    @dataclass(frozen=True)
    class Options:
        batch: int = 128
        precision: str = "fp32"
        as_bytes: bool = False  # else the host makes floats of the frames
        read_errors: bool = True  # for the priorities
        compiled: bool = False

    def __init__(self, options: Options, device: str) -> None:
        super().__init__(options, device)
        capacity, self.batch = (20_000, options.batch) if device == "cuda" else (200, 4)
        self.replay = Replay(capacity, 84)
        self.online = nn.Sequential(
            *(nn.Conv2d(4, 32, 8, 4), nn.ReLU(), nn.Conv2d(32, 64, 4, 2), nn.ReLU(), nn.Conv2d(64, 64, 3, 1)),
            *(nn.ReLU(), nn.Flatten(), nn.Linear(3136, 512), nn.ReLU(), nn.Linear(512, 6)),
        ).to(device)
        self.target = copy.deepcopy(self.online)
        self.optimizer = torch.optim.Adam(self.online.parameters(), lr=1e-4)
        self.values, self.later = self.online, self.target
        if options.compiled:
            self.values, self.later = torch.compile(self.online), torch.compile(self.target)

    def frames(self, pixels: np.ndarray) -> torch.Tensor:
        if self.options.as_bytes:
            return torch.as_tensor(pixels).to(self.device).float() / 255
        return torch.as_tensor(pixels.astype(np.float32) / 255).to(self.device)

    def step(self) -> None:
        at, before, after, actions, rewards = self.replay.drawn(self.batch)
        before, after = self.frames(before), self.frames(after)
        actions, rewards = (torch.as_tensor(part).to(self.device) for part in (actions, rewards))
        with self.autocast():
            with torch.no_grad():
                best = self.values(after).argmax(1, keepdim=True)
                wanted = rewards + 0.99 * self.later(after).gather(1, best).squeeze(1)
            found = self.values(before).gather(1, actions[:, None]).squeeze(1)
            self.loss = functional.smooth_l1_loss(found, wanted)
        self.optimizer.zero_grad()
        self.loss.backward()
        self.optimizer.step()
        if self.options.read_errors:
            self.replay.priorities[at] = (found - wanted).detach().abs().float().cpu().numpy() + 1e-3
        self.steps += 1
        if self.steps % 1000 == 0:
            self.target.load_state_dict(self.online.state_dict())


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


def upward(inner: int, outer: int, stride: int, padding: int) -> list[nn.Module]:
    return [nn.ConvTranspose2d(inner, outer, 4, stride, padding, bias=False), nn.BatchNorm2d(outer), nn.ReLU(True)]


def downward(inner: int, outer: int) -> list[nn.Module]:
    return [nn.Conv2d(inner, outer, 4, 2, 1, bias=False), nn.BatchNorm2d(outer), nn.LeakyReLU(0.2, inplace=True)]


class Gan(Training):
    """torch's example of a DCGAN: two networks with an optimizer each, and the figures of its log are read at once."""

    @dataclass(frozen=True)
    class Options:
        batch: int = 64
        precision: str = "fp32"
        optimizer: str = "foreach"
        read_losses: bool = True

    def __init__(self, options: Options, device: str) -> None:
        super().__init__(options, device)
        real = device == "cuda"
        width, batch = (64, options.batch) if real else (4, 2)
        self.generator = nn.Sequential(
            *upward(100, 8 * width, 1, 0),
            *(part for scale in (8, 4, 2) for part in upward(scale * width, scale * width // 2, 2, 1)),
            *(nn.ConvTranspose2d(width, 3, 4, 2, 1, bias=False), nn.Tanh()),
        ).to(device)
        self.critic = nn.Sequential(
            *(nn.Conv2d(3, width, 4, 2, 1, bias=False), nn.LeakyReLU(0.2, inplace=True)),
            *(part for scale in (1, 2, 4) for part in downward(scale * width, 2 * scale * width)),
            *(nn.Conv2d(8 * width, 1, 4, 1, 0, bias=False), nn.Sigmoid()),
        ).to(device)
        way = {"lr": 2e-4, "betas": (0.5, 0.999), **WAYS[options.optimizer]}
        self.of_critic = torch.optim.Adam(self.critic.parameters(), **way)
        self.of_generator = torch.optim.Adam(self.generator.parameters(), **way)
        images = [torch.rand(batch, 3, 64, 64) * 2 - 1 for _ in range(8)]
        self.batches = itertools.cycle([batch.pin_memory() for batch in images] if real else images)
        self.log: deque[float] = deque(maxlen=500)

    def read(self, value: torch.Tensor) -> None:
        if self.options.read_losses:
            self.log.append(value.mean().item())

    def step(self) -> None:
        judged = nn.BCELoss()
        images = next(self.batches).to(self.device, non_blocking=True)
        label = torch.full((len(images),), 1.0, device=self.device)

        self.critic.zero_grad()
        out = self.critic(images).view(-1)
        loss_real = judged(out, label)
        loss_real.backward()
        self.read(out)
        fake = self.generator(torch.randn(len(images), 100, 1, 1, device=self.device))
        label.fill_(0.0)
        out = self.critic(fake.detach()).view(-1)
        loss_fake = judged(out, label)
        loss_fake.backward()
        self.read(out)
        self.of_critic.step()

        self.generator.zero_grad()
        label.fill_(1.0)
        out = self.critic(fake).view(-1)
        loss = judged(out, label)
        loss.backward()
        self.read(out)
        self.of_generator.step()
        self.loss = (loss_real + loss_fake + loss).detach()
        self.read(loss_real + loss_fake)
        self.read(loss)


class ClickModel(nn.Module):
    """DLRM: a table for each categorical feature, products of all pairs, and a network on top."""

    def __init__(self, tables: int, rows: int, width: int) -> None:
        super().__init__()
        self.tables = nn.ModuleList([nn.EmbeddingBag(rows, width, mode="sum") for _ in range(tables)])
        self.bottom = nn.Sequential(
            *(nn.Linear(13, 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, width), nn.ReLU())
        )
        pairs = torch.tril_indices(tables + 1, tables + 1, -1)
        self.register_buffer("pairs", pairs)
        self.top = nn.Sequential(
            *(nn.Linear(width + pairs.shape[1], 1024), nn.ReLU(), nn.Linear(1024, 512), nn.ReLU(), nn.Linear(512, 1))
        )

    def forward(self, dense: torch.Tensor, words: torch.Tensor) -> torch.Tensor:
        low = self.bottom(dense)
        rows = [table(words[:, at : at + 1]) for at, table in enumerate(self.tables)]
        every = torch.stack([low, *(row.to(low.dtype) for row in rows)], 1)
        products = torch.bmm(every, every.transpose(1, 2))[:, self.pairs[0], self.pairs[1]]
        return self.top(torch.cat([low, products], 1)).squeeze(1)


class Dlrm(Training):
    """Predicts clicks. The gradients of its tables are dense, so that the optimizer goes through all rows."""

    @dataclass(frozen=True)
    class Options:
        batch: int = 2048
        precision: str = "fp32"
        optimizer: str = "foreach"
        keep_scores: bool = True  # on the host, for a metric

    def __init__(self, options: Options, device: str) -> None:
        super().__init__(options, device)
        tables, rows, self.batch = (26, 100_000, options.batch) if device == "cuda" else (3, 50, 8)
        self.model = ClickModel(tables, rows, 64 if device == "cuda" else 8).to(device)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-3, **WAYS[options.optimizer])
        generator = np.random.default_rng(0)
        self.dense = generator.standard_normal((16 * self.batch, 13), dtype=np.float32)
        self.words = generator.integers(0, rows, (16 * self.batch, tables))
        self.clicks = generator.integers(0, 2, 16 * self.batch).astype(np.float32)
        self.scores: deque[torch.Tensor] = deque(maxlen=100)

    def step(self) -> None:
        begin = self.steps % 16 * self.batch
        self.steps += 1
        here = slice(begin, begin + self.batch)
        dense, words, clicks = (
            torch.from_numpy(part[here]).to(self.device) for part in (self.dense, self.words, self.clicks)
        )
        self.optimizer.zero_grad()
        with self.autocast():
            out = self.model(dense, words)
        self.loss = functional.binary_cross_entropy_with_logits(out.float(), clicks)
        self.loss.backward()
        self.optimizer.step()
        if self.options.keep_scores:
            self.scores.append(torch.sigmoid(out.detach()).cpu())


PROGRAMS: dict[str, type[Training]] = {
    "bert-finetune": BertFinetune,
    "video": Video,
    "detection": Detection,
    "lstm-lm": LstmLanguage,
    "gnn": Gnn,
    "diffusion": Diffusion,
    "dqn": Dqn,
    "simclr": SimClr,
    "gan": Gan,
    "dlrm": Dlrm,
}

BF16, FUSED = ("precision", {"precision": "bf16"}), ("fused-optimizer", {"optimizer": "fused"})

# Options to begin with, and what would make it faster, as in cures.Group.
CURES: dict[str, tuple[Any, tuple[tuple[str, dict[str, Any]], ...]]] = {
    "bert-finetune": (BertFinetune.Options(), (BF16, FUSED, ("no-sync", {"read_loss": False}))),
    "video": (
        Video.Options(),
        (
            ("pin", {"pinned": True}),
            ("side-stream", {"side_stream": True}),
            ("bytes", {"as_bytes": True}),
        ),
    ),
    "detection": (
        Detection.Options(),
        (
            ("garbage-collection", {"collect": False}),
            ("allocator,garbage-collection", {"collect": False, "empty_cache": False}),
        ),
    ),
    "lstm-lm": (LstmLanguage.Options(), (("no-sync", {"log_norms": False, "read_loss": False}), FUSED)),
    "gnn": (Gnn.Options(), (("workers=4", {"workers": 4}), ("validation", {"validate_every": 0}))),
    "diffusion": (Diffusion.Options(), (("graphs", {"graphed": True}), BF16)),
    "dqn": (
        Dqn.Options(),
        (("bytes", {"as_bytes": True}), ("no-sync", {"read_errors": False}), ("compile", {"compiled": True})),
    ),
    "simclr": (
        SimClr.Options(),
        (("workers=2", {"workers": 2}), ("workers=8,pin", {"workers": 8, "pinned": True}), BF16),
    ),
    "gan": (Gan.Options(), (("no-sync", {"read_losses": False}), FUSED)),
    "dlrm": (Dlrm.Options(), (FUSED, BF16)),
}
