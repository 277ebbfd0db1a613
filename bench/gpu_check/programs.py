"""Small training programs for a GPU, each with the faults that people's programs have, and without them.

    programs.py MODEL [NAME=VALUE ...] [--seconds S] [--json FILE]    trains, and says its step times by its own clock

A program is a model and options; a fault is an option, and its cure is another value of it (cures.py). Nothing here
knows fullbore, and nothing is read from the network or from files: data are random, of the sizes that people use.
Programs as they are written with other people's libraries are in strangers; MODEL may be one of them.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset

IMAGE, CLASSES, TOKENS, VOCABULARY, WIDTH = 224, 100, 512, 32000, 256
WAYS = {"loop": {"foreach": False}, "foreach": {"foreach": True}, "fused": {"fused": True}}  # of torch's optimizers
HALVES = {"bf16": torch.bfloat16, "fp16": torch.float16}


@dataclass(frozen=True)
class Options:
    batch: int = 8
    precision: str = "fp32"  # of matrix products: fp32, tf32, or bf16 by autocast
    optimizer: str = "foreach"  # AdamW's ways: loop, foreach, fused
    data: str = "device"  # where batches come from: device, host (ready in memory), loader (made sample by sample)
    workers: int = 0
    pinned: bool = False
    side_stream: bool = False
    as_bytes: bool = False  # images travel as uint8
    read_loss: bool = False
    empty_cache: bool = False
    compiled: bool = False
    graphed: bool = False
    checkpoint_every: int = 0  # steps; 0: never
    collect_every: int = 0  # garbage


class Block(nn.Module):
    """Of ResNet-18."""

    def __init__(self, inner: int, outer: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(inner, outer, 3, stride, 1, bias=False)
        self.second = nn.Conv2d(outer, outer, 3, 1, 1, bias=False)
        self.norms = nn.ModuleList([nn.BatchNorm2d(outer), nn.BatchNorm2d(outer)])
        self.skip = nn.Conv2d(inner, outer, 1, stride, bias=False) if stride > 1 or inner != outer else nn.Identity()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = functional.relu(self.norms[0](self.first(x)))
        return functional.relu(self.norms[1](self.second(y)) + self.skip(x))


def resnet() -> nn.Module:
    layers: list[nn.Module] = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU()]
    layers.append(nn.MaxPool2d(3, 2, 1))
    widths = (64, 64, 64, 128, 128, 256, 256, 512, 512)
    layers += [Block(a, b, 2 if a < b else 1) for a, b in zip(widths, widths[1:])]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, CLASSES))


def thin() -> nn.Module:
    """So little work that the copy of a batch shows."""
    convolutions = [nn.Conv2d(3, 32, 7, 4, 3), nn.ReLU(), nn.Conv2d(32, 64, 3, 2, 1), nn.ReLU()]
    return nn.Sequential(*convolutions, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, CLASSES))


class Attention(nn.Module):
    """One layer of a decoder, written as people write it."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.to_all, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, tokens, width = x.shape
        q, k, v = self.to_all(self.norms[0](x)).view(batch, tokens, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(batch, tokens, width))
        return x + self.narrow(functional.gelu(self.wide(self.norms[1](x))))


class Gpt(nn.Module):
    def __init__(self, width: int = 768, heads: int = 12, layers: int = 6) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(VOCABULARY, width), nn.Embedding(TOKENS, width)
        self.layers = nn.Sequential(*(Attention(width, heads) for _ in range(layers)), nn.LayerNorm(width))
        self.head = nn.Linear(width, VOCABULARY, bias=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.head(self.layers(self.words(tokens) + self.places.weight))


def mlp() -> nn.Module:
    """Many small operators: the host cannot launch them as fast as the device runs them."""
    layers = [nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.LayerNorm(WIDTH), nn.GELU()) for _ in range(20)]
    return nn.Sequential(*layers, nn.Linear(WIDTH, CLASSES))


def product() -> nn.Module:
    """A matrix product whose arithmetic is known: twice 2 * BATCH * 8192 * 8192 operations a step, forward and for
    the gradient of the weight."""
    return nn.Linear(8192, 8192, bias=False)


MODELS: dict[str, Callable[[], nn.Module]] = {
    "resnet": resnet,
    "thin": thin,
    "gpt": Gpt,
    "mlp": mlp,
    "product": product,
}


def sample(model: str, generator: np.random.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """An input and its target, on the host."""
    if model == "gpt":
        tokens = torch.from_numpy(generator.integers(0, VOCABULARY, TOKENS))
        return tokens, tokens.roll(-1)
    if model in ("mlp", "product"):
        width = WIDTH if model == "mlp" else 8192
        return torch.from_numpy(generator.standard_normal(width, dtype=np.float32)), torch.tensor(1)
    pixels = generator.integers(0, 256, (3, IMAGE, IMAGE), dtype=np.uint8)
    return torch.from_numpy(pixels), torch.tensor(int(generator.integers(0, CLASSES)))


class Photos(Dataset):
    """Images that are flipped and normalised one by one, which takes the host about a millisecond."""

    def __init__(self, as_bytes: bool) -> None:
        generator = np.random.default_rng(0)
        self.photos = [generator.integers(0, 256, (IMAGE + 32, IMAGE + 32, 3), dtype=np.uint8) for _ in range(64)]
        self.as_bytes = as_bytes

    def __len__(self) -> int:
        return 1 << 20

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        photo, at = self.photos[index % 64], index % 32
        photo = np.ascontiguousarray(photo[at : at + IMAGE, at : at + IMAGE, :][:, ::-1].transpose(2, 0, 1))
        if not self.as_bytes:
            photo = (photo.astype(np.float32) / 255 - 0.45) / 0.225
        return torch.from_numpy(photo), index % CLASSES


class Training:
    """What takes one step at a time. `device` may be the CPU, where everything of CUDA is left out. Options have at
    least a precision."""

    loss: torch.Tensor  # of the last step

    def __init__(self, options: Any, device: str) -> None:
        torch.manual_seed(0)
        set_precision(options)
        self.options, self.device, self.steps = options, device, 0

    def step(self) -> None:
        raise NotImplementedError

    def autocast(self) -> contextlib.AbstractContextManager:
        half = HALVES.get(self.options.precision)
        if half is None or (half is torch.float16 and self.device == "cpu"):  # which has no fast way for it
            return contextlib.nullcontext()
        return torch.autocast(self.device, half)

    def turn(self, seconds: float) -> float:
        """Trains for about so long, and returns the mean ns of a step, with all the work that it queued."""
        set_precision(self.options)
        self.wait()
        begin, steps = time.perf_counter_ns(), 0
        while steps < 3 or time.perf_counter_ns() - begin < 1e9 * seconds:
            for _ in range(5):
                self.step()
            steps += 5
            self.wait()
        return (time.perf_counter_ns() - begin) / steps

    def wait(self) -> None:
        if self.device == "cuda":
            torch.cuda.synchronize()


class Program(Training):
    """One of MODELS in a plain loop."""

    def __init__(self, model: str, options: Options, device: str) -> None:
        super().__init__(options, device)
        self.name = model
        self.model = MODELS[model]().to(device)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4, **WAYS[options.optimizer])
        self.host_batches = self.made_batches()
        self.stream = torch.cuda.Stream() if options.side_stream and device == "cuda" else None
        self.coming = self.copied(next(self.host_batches)) if self.stream else None
        self.ready = self.copied(next(self.host_batches)) if options.data == "device" else None
        self.forward: Callable[[torch.Tensor], torch.Tensor] = self.model
        if options.compiled:
            self.forward = torch.compile(self.model)
        elif options.graphed and device == "cuda":
            example = self.ready or self.copied(next(self.host_batches))
            self.forward = torch.cuda.make_graphed_callables(self.model, (self.input_of(example).clone(),))

    def made_batches(self) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        options = self.options
        if options.data == "loader":
            photos = Photos(options.as_bytes)
            how = {"num_workers": options.workers, "pin_memory": options.pinned and self.device == "cuda"}
            while True:
                yield from DataLoader(photos, options.batch, drop_last=True, **how)
        generator = np.random.default_rng(0)
        kept = []
        for _ in range(1 if options.data == "device" else 4):
            inputs, targets = zip(*(sample(self.name, generator) for _ in range(options.batch)))
            batch = torch.stack(inputs), torch.stack(targets)
            if batch[0].dtype == torch.uint8 and not options.as_bytes:
                batch = (batch[0].float() / 255, batch[1])
            pins = options.pinned and self.device == "cuda"
            kept.append(tuple(part.pin_memory() for part in batch) if pins else batch)
        while True:
            yield from kept

    def copied(self, batch: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
        with torch.cuda.stream(self.stream) if self.stream else contextlib.nullcontext():
            return tuple(part.to(self.device, non_blocking=self.options.pinned) for part in batch)

    def next_batch(self) -> tuple[torch.Tensor, ...]:
        if self.ready:
            return self.ready
        if not self.stream:
            return self.copied(next(self.host_batches))
        torch.cuda.current_stream().wait_stream(self.stream)
        batch, self.coming = self.coming, None
        for part in batch:
            part.record_stream(torch.cuda.current_stream())
        self.coming = self.copied(next(self.host_batches))
        return batch

    def input_of(self, batch: tuple[torch.Tensor, ...]) -> torch.Tensor:
        return batch[0].float() / 255 if batch[0].dtype == torch.uint8 else batch[0]

    def loss_of(self, batch: tuple[torch.Tensor, ...]) -> torch.Tensor:
        out = self.forward(self.input_of(batch))
        if self.name == "product":
            return out.float().mean()
        return functional.cross_entropy(out.flatten(0, -2).float(), batch[1].flatten())

    def step(self) -> None:
        options = self.options
        batch = self.next_batch()
        self.optimizer.zero_grad()
        with self.autocast():
            self.loss = self.loss_of(batch)
        self.loss.backward()
        self.optimizer.step()
        self.steps += 1
        if options.read_loss:
            self.loss.item()
        if options.empty_cache:
            torch.cuda.empty_cache()
        if options.checkpoint_every and self.steps % options.checkpoint_every == 0:
            with tempfile.TemporaryDirectory() as place:
                torch.save(self.model.state_dict(), Path(place) / "model.pt")
        if options.collect_every and self.steps % options.collect_every == 0:
            gc.collect()


def set_precision(options: Any) -> None:
    """Convolutions take TF32 by default, and so they do here where products may take it, too."""
    torch.set_float32_matmul_precision("high" if options.precision == "tf32" else "highest")


def by_strangers() -> dict[str, type[Training]]:
    import strangers  # here, as it stands on this module

    return strangers.PROGRAMS


def made(name: str, options: Any, device: str) -> Training:
    """One of MODELS or a stranger. Ends this process where the stranger's library is missing."""
    try:
        return Program(name, options, device) if name in MODELS else by_strangers()[name](options, device)
    except ModuleNotFoundError as error:
        if not error.name:  # a library found something else missing
            raise
        sys.exit(f"{error.name.partition('.')[0]} is not installed")


def options_of(words: list[str], kind: type = Options, **others: object) -> Any:
    """batch=8 read_loss=1"""
    kinds = {field.name: type(field.default) for field in fields(kind)}
    pairs = dict(word.split("=", 1) for word in words)
    found = {name: value if kinds[name] is str else kinds[name](int(value)) for name, value in pairs.items()}
    return kind(**{**found, **others})


def default_device() -> str:
    return "cuda" if torch.cuda.is_available() else "cpu"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", choices=[*MODELS, *by_strangers()])
    parser.add_argument("options", nargs="*", metavar="NAME=VALUE")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--json", type=Path, help="write its own figures to this file")
    arguments = parser.parse_args()
    if default_device() == "cpu":
        torch.set_num_threads(1)  # as good as more for a test, beside whatever else runs
    kind = Options if arguments.model in MODELS else by_strangers()[arguments.model].Options
    program = made(arguments.model, options_of(arguments.options, kind), default_device())
    set_precision(program.options)
    ends, losses = [], []
    begin = time.monotonic()
    while time.monotonic() - begin < arguments.seconds:
        program.step()
        ends.append(time.monotonic_ns())
        if len(losses) < 20:
            losses.append(program.loss.detach())
        if program.device == "cuda" and len(ends) % 10 == 0:
            torch.cuda.synchronize()  # the clock is to see the device's pace
    program.wait()
    if arguments.json:
        peak = torch.cuda.max_memory_allocated() if program.device == "cuda" else 0
        figures = {"ends_ns": ends, "losses": [float(loss) for loss in losses], "peak_bytes": peak}
        arguments.json.write_text(json.dumps(figures))


if __name__ == "__main__":
    main()
