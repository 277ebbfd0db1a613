#!/usr/bin/env python3
"""Trains a ResNet-18 on the CPU with torch's DataLoader at its best number of workers, and with fullbore.data.

    train.py [DATA] [--epochs 2] [--batch-size 32] [--image-size 96] [--width 16] [--rounds 2]

Needs a Python with torch, Pillow and fullbore.data. DATA has one directory per class (make_data.py's `small`); every
eighth photo is held out. First, part of an epoch with 0, 1 and 2 workers finds the DataLoader's best; then both train
alternately from the same weights for the same number of epochs, with the same distribution of random crops. Prints one
JSON object: step times (median of the steps, and of the epochs' means) and accuracy on the held-out photos.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "examples"), str(ROOT / "bench" / "loader" / "peers")]

import pillow_transforms  # noqa: E402
import torch  # noqa: E402
import train_resnet  # noqa: E402
from dataloader import Images  # noqa: E402
from torch.nn import functional  # noqa: E402
from torch.utils.data import DataLoader  # noqa: E402

HELD_OUT = 8
TRIAL_STEPS = 20


def split(data: Path) -> tuple[list[Path], list[Path]]:
    paths = sorted(data.glob("*/*.jpg"), key=lambda path: path.name)
    if not paths:
        raise SystemExit(f"no photos below '{data}': bench/loader/make_data.py makes them")
    # In groups of ten: the numbering cycles through the classes, and each must lose the same share.
    held_out = [path for number, path in enumerate(paths) if number // 10 % HELD_OUT == 0]
    return sorted(set(paths) - set(held_out)), sorted(held_out)


class Sized(Images):
    """The benchmark's dataset at another image size."""

    def __init__(self, paths: list[Path], side: int, check: bool):
        super().__init__(paths, check)
        tv = pillow_transforms.tv
        if tv is None:
            pillow_transforms.SIDE = side
            self.transform = pillow_transforms.Plain(check)
        else:
            geometry = [tv.Resize((side, side))] if check else [tv.RandomResizedCrop(side), tv.RandomHorizontalFlip()]
            normalize = tv.Normalize(pillow_transforms.MEAN, pillow_transforms.STD)
            self.transform = tv.Compose([*geometry, tv.ToTensor(), normalize])


def torch_loader(args: argparse.Namespace, workers: int) -> DataLoader:
    return DataLoader(
        Sized(args.train, args.image_size, False),
        batch_size=args.batch_size,
        shuffle=True,
        drop_last=True,
        num_workers=workers,
        persistent_workers=workers > 0,
    )


def our_loader(args: argparse.Namespace):
    from fullbore.data import FileList, transforms

    classes = sorted({path.parent.name for path in args.train})
    pairs = [(str(path), classes.index(path.parent.name)) for path in args.train]
    return FileList(
        pairs,
        transforms=[
            transforms.RandomResizedCrop(args.image_size),
            transforms.RandomHorizontalFlip(),
            transforms.Normalize(),
        ],
        batch_size=args.batch_size,
        drop_last=True,
        seed=args.seed,
    )


def new_model(args: argparse.Namespace) -> torch.nn.Module:
    torch.manual_seed(args.seed)
    return train_resnet.ResNet18(10, args.width)


def train(args: argparse.Namespace, loader, epochs: int, steps_at_most: int | None = None):
    """The trained model, and each step's time in seconds, waiting included."""
    model = new_model(args)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
    steps: list[float] = []
    for _ in range(epochs):
        begin = time.perf_counter()
        for images, labels in loader:
            optimizer.zero_grad()
            functional.cross_entropy(model(images), labels).backward()
            optimizer.step()
            now = time.perf_counter()
            steps.append(now - begin)
            begin = now
            if steps_at_most is not None and len(steps) >= steps_at_most:
                return model, steps
    return model, steps


@torch.no_grad()
def accuracy(args: argparse.Namespace, model: torch.nn.Module) -> float:
    model.eval()
    right = total = 0
    for images, labels in DataLoader(Sized(args.held_out, args.image_size, True), batch_size=64):
        right += int((model(images).argmax(1) == labels).sum())
        total += len(labels)
    return right / total


def summary(steps: list[float], right: float) -> dict[str, float]:
    settled = steps[len(steps) // 10 :]  # without the start
    return {
        "median_step_ms": 1e3 * statistics.median(settled),
        "mean_step_ms": 1e3 * statistics.mean(settled),
        "accuracy": right,
    }


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, nargs="?", default=ROOT / "build" / "loader-data" / "small")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--image-size", type=int, default=96)
    parser.add_argument("--width", type=int, default=16)
    parser.add_argument("--threads", type=int, default=max(1, len(os.sched_getaffinity(0)) // 2))
    args = parser.parse_args()
    args.train, args.held_out = split(args.data)
    return args


def main() -> None:
    args = parse()
    torch.set_num_threads(args.threads)
    args.seed = 0
    trials = {}
    for workers in (0, 1, 2):
        _, steps = train(args, torch_loader(args, workers), 1, TRIAL_STEPS)
        trials[workers] = statistics.mean(steps[TRIAL_STEPS // 4 :])
        print(f"DataLoader, {workers} workers: {1e3 * trials[workers]:.1f} ms a step", file=sys.stderr)
    best = min(trials, key=lambda workers: trials[workers])
    makers = {
        f"DataLoader, {best} workers": lambda: torch_loader(args, best),
        "fullbore.data": lambda: our_loader(args),
    }
    results: dict[str, list[dict[str, float]]] = {name: [] for name in makers}
    for turn in range(args.rounds):
        args.seed = turn  # of model, order and crops: a single run's accuracy is as much chance as skill
        for name, make in makers.items():
            model, steps = train(args, make(), args.epochs)
            results[name].append(summary(steps, accuracy(args, model)))
            print(f"round {turn + 1}, {name}: {results[name][-1]}", file=sys.stderr)
    theirs, ours = results.values()
    ratios = [b["mean_step_ms"] / a["mean_step_ms"] for a, b in zip(theirs, ours)]
    for name, runs in results.items():
        right = [run["accuracy"] for run in runs]
        spread = f" +- {statistics.stdev(right):.3f}" if len(right) > 1 else ""
        print(f"{name}: accuracy {statistics.mean(right):.3f}{spread} over {len(right)} seeds", file=sys.stderr)
    print(json.dumps({"trials_s": trials, "results": results, "step_ratio": statistics.median(ratios)}, indent=1))


if __name__ == "__main__":
    main()
