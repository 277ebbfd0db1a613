"""One process of hook_cost.py: trains without the hook and with each of its two paths, by turns.

All in one process, because two differ by more than the hook costs: in how memory lies, in hash seeds, in what their
caches hold. What is taken away and put back is what the hook really changed: the attributes of torch's classes and
modules before and after it was attached, and the line sampler's thread. So between two turns nothing of ours is left
but a few objects that nobody calls.

    process.py KIND ROUNDS DIRECTORY_OF_THE_EXTENSION    prints a JSON object, {variant: [ns a step, ...]}
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import pathlib
import sys
import time
from types import SimpleNamespace
from typing import Any, Callable

import torch
import torch.utils.data.dataloader
from torch import nn
from torch.optim import optimizer as optim
from torch.utils.data import DataLoader, Dataset
from torch.utils.data._utils import fetch, worker

HOOK = pathlib.Path(__file__).resolve().parents[2] / "python" / "fullbore" / "hook"
STEPS_TO_LEARN = 80  # at least: the hook's patches have settled, and its looks at each step are over
STEPS_TO_SETTLE = 5  # after a turn begins: Python adapts its byte code, the sampler starts

# KIND: width and depth of the model, batch size, steps in a turn
KINDS = {"batch1": (4, 1, 1, 300), "batch256": (4, 1, 256, 80), "1ms": (256, 4, 32, 150), "20ms": (640, 5, 192, 8)}
KINDS["fetch"] = (4, 1, 1, 2000)
ON_DEVICE = {"device1ms": (192, 6, 32, 300), "device5ms": (192, 40, 32, 60), "device50ms": (4096, 4, 8192, 8)}

OWNERS = [
    torch,
    torch.cuda,
    torch.cuda.Event,
    torch.cuda.Stream,
    torch.Tensor,
    torch.autograd,
    torch.serialization,
    nn.Module,
    nn.Sequential,
    DataLoader,
    optim.Optimizer,
]
OWNERS += [torch.utils.data.dataloader._BaseDataLoaderIter, fetch._MapDatasetFetcher, fetch._IterableDatasetFetcher]
HOOK_TABLES = [optim._global_optimizer_pre_hooks, optim._global_optimizer_post_hooks]
MISSING = object()


def attributes() -> list[dict]:
    return [dict(vars(owner)) for owner in OWNERS] + [dict(table) for table in HOOK_TABLES]


class Patches:
    """What changed between two states of torch."""

    def __init__(self, before: list[dict], after: list[dict]) -> None:
        self.changes: list[tuple[Any, str, Any, Any]] = []
        for owner, old, new in zip(OWNERS, before, after):
            for name in {**old, **new}:
                values = old.get(name, MISSING), new.get(name, MISSING)
                if values[0] is not values[1]:
                    self.changes.append((owner, name, *values))
        self.tables = list(zip(HOOK_TABLES, before[len(OWNERS) :], after[len(OWNERS) :]))

    def put(self, on: bool) -> None:
        for owner, name, old, new in self.changes:
            value = new if on else old
            if value is MISSING:
                delattr(owner, name)
            else:
                setattr(owner, name, value)
        for table, old, new in self.tables:
            table.clear()
            table.update(new if on else old)


class Without:
    """The script as it is."""

    def __init__(self, training: Training) -> None:
        self.work = training.begin()

    def put(self, on: bool) -> None:
        pass


class Hooked:
    """One of the hook's paths, in a package of its own."""

    def __init__(self, name: str, native: str, training: Training) -> None:
        os.environ["FULLBORE_HOOK_NATIVE"] = native
        self.package = f"_fullbore_hook_{name}"
        place = str(HOOK)
        spec = importlib.util.spec_from_file_location(
            self.package, place + "/__init__.py", submodule_search_locations=[place]
        )
        package = sys.modules[self.package] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(package)
        before = attributes()
        package.start().attach()
        path = self.part("core.native").PATH
        if path != name:
            raise SystemExit(f"no {name} path: {self.part('core.native').reason}")
        self.work = training.begin()
        for _ in range(STEPS_TO_LEARN):
            self.work()
        while self.samples_densely():  # in a training's first seconds
            self.work()
        self.learned = self.steps()
        self.patches = Patches(before, attributes())
        self.put(False)

    def part(self, name: str) -> Any:
        return importlib.import_module(f"{self.package}.{name}")

    def put(self, on: bool) -> None:
        self.patches.put(on)
        self.part("sampling.lines").stop()  # the next step starts it again

    def samples_densely(self) -> bool:
        sampler = self.part("sampling.lines").sampler
        return sampler is not None and sampler.density.dense

    def steps(self) -> int:
        return self.part("core.runtime").hook.steps


class Ready(Dataset):
    """A batch that is there already."""

    def __init__(self, batch: int, width: int) -> None:
        self.data = torch.randn(batch, width)

    def __len__(self) -> int:
        return 1 << 30

    def __getitems__(self, indices: list[int]) -> torch.Tensor:
        return self.data


class Samples(Dataset):
    """Samples that cost next to nothing, one by one."""

    def __init__(self, width: int) -> None:
        self.data = list(torch.randn(256, width))

    def __len__(self) -> int:
        return 1 << 30

    def __getitem__(self, index: int) -> torch.Tensor:
        return self.data[index & 255]


class Training:
    def __init__(self, width: int, depth: int, batch: int, one_by_one: bool, device: str) -> None:
        layers = [nn.Sequential(nn.Linear(width, width), nn.ReLU()) for _ in range(depth)]
        self.model = nn.Sequential(*layers).to(device)
        self.device = device
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-6)
        self.batch = batch
        self.dataset = Samples(width) if one_by_one else Ready(batch, width)
        self.collate = torch.stack if one_by_one else lambda samples: samples

    def begin(self) -> Callable[[], None]:
        """A step of a new loop over a loader of its own; the model and its optimizer are the same for all."""
        loader = DataLoader(self.dataset, self.batch, sampler=range(1 << 30), collate_fn=self.collate)
        batches, model, optimizer = iter(loader), self.model, self.optimizer

        on_device = self.device != "cpu"

        def step() -> None:
            x = next(batches)
            if on_device:
                x = x.to("cuda", non_blocking=True)
            optimizer.zero_grad()
            loss = model(x).sum()
            loss.backward()
            optimizer.step()

        return step


class Fetching(Training):
    """What a loader's worker does for each batch, beside waiting for its turn."""

    def begin(self) -> Callable[[], None]:
        fetcher = fetch._MapDatasetFetcher(self.dataset, True, self.collate, False)
        asked = [0]

        def fetch_one() -> None:
            fetcher.fetch(asked)

        return fetch_one


def wait_for(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def main() -> None:
    kind, rounds, native = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    os.environ["FULLBORE_WINDOWS"] = "off"  # windows_cost.py measures them, and they would lie where this runs
    torch.set_num_threads(1)
    width, depth, batch, steps = {**KINDS, **ON_DEVICE}[kind]
    device = "cuda" if kind in ON_DEVICE else "cpu"
    if kind == "fetch":
        worker._worker_info = SimpleNamespace(id=0)
    training = (Fetching if kind == "fetch" else Training)(width, depth, batch, kind == "batch256", device)
    variants: dict[str, Any] = {"off": Without(training)}
    variants["native"] = Hooked("native", native, training)
    variants["python"] = Hooked("python", "0", training)
    for _ in range(STEPS_TO_LEARN):
        variants["off"].work()
    taken: dict[str, list[float]] = {name: [] for name in variants}
    for turn in range(rounds):
        for name in sorted(variants, reverse=turn % 2 == 1):
            variant = variants[name]
            variant.put(True)
            for _ in range(STEPS_TO_SETTLE):
                variant.work()
            wait_for(device)
            begin = time.perf_counter_ns()
            for _ in range(steps):
                variant.work()
            wait_for(device)
            taken[name].append((time.perf_counter_ns() - begin) / steps)
            variant.put(False)
    if kind != "fetch":  # what was measured did happen
        wanted = rounds * (STEPS_TO_SETTLE + steps)
        assert all(variants[name].steps() - variants[name].learned == wanted for name in ("native", "python"))
    print(json.dumps(taken))


if __name__ == "__main__":
    main()
