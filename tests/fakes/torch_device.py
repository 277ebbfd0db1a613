"""Stands in for a CUDA device under a PyTorch for the CPU, as the hook sees one: a script imports this, and trains
`Model` on batches of tokens. Its allocator holds what AdamW needs, and PER_TOKEN bytes of each token while a batch is
computed; beyond ROOM it raises what PyTorch raises. The part of the hook that looks at a device is switched on here, as
by a PyTorch that is built for CUDA."""

from __future__ import annotations

import sys
import types

import torch

WORDS, WIDTH = 1000, 64
WEIGHTS = 2 * WORDS * WIDTH * 4  # bytes; of float32
PER_TOKEN = 1000
TOTAL, OUTSIDE = 12_000_000, 1_000_000
ROOM = TOTAL - OUTSIDE

peak = 0
optimizer: torch.optim.Optimizer | None = None


def held() -> int:
    return WEIGHTS * (4 if optimizer is not None and optimizer.state else 2)


def take(tokens: int) -> None:
    global peak
    needed = held() + PER_TOKEN * tokens
    if needed > ROOM:
        mib = [f"{size / 2**20:.2f} MiB" for size in (needed - ROOM, TOTAL, 0, ROOM, 0)]
        raise torch.OutOfMemoryError(
            "CUDA out of memory. Tried to allocate {}. GPU 0 has a total capacity of {} of which {} is free. Of the "
            "allocated memory {} is allocated by PyTorch, and {} is reserved by PyTorch but unallocated.".format(*mib)
        )
    peak = max(peak, needed)


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = torch.nn.Embedding(WORDS, WIDTH)
        self.head = torch.nn.Linear(WIDTH, WORDS, bias=False)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        take(ids.numel())
        return self.head(self.embed(ids))


def memory_stats() -> dict[str, int]:
    reserved = peak + 100_000
    sizes = {"allocated_bytes.all.current": held(), "allocated_bytes.all.peak": peak, "num_alloc_retries": 0}
    return {**sizes, "reserved_bytes.all.current": reserved, "reserved_bytes.all.peak": reserved}


class Event:
    def __init__(self, enable_timing: bool) -> None:
        pass

    def record(self) -> None:
        pass

    def query(self) -> bool:
        return True

    def elapsed_time(self, other: Event) -> float:
        return 1.0

    synchronize = record


def train(batches: list[tuple[int, int]]) -> None:
    """On batches of so many rows of so many tokens."""
    global optimizer
    model = Model()
    optimizer = torch.optim.AdamW(model.parameters())
    loss_of = torch.nn.CrossEntropyLoss()  # called with more numbers than the model
    for rows, width in batches:
        ids = torch.zeros(rows, width, dtype=torch.int64)
        optimizer.zero_grad()
        loss_of(model(ids).view(-1, WORDS), ids.view(-1)).backward()
        optimizer.step()


def attach() -> None:
    hook = sys.modules.get("_fullbore_hook.torch.device")
    if hook is None:
        return
    cuda = types.SimpleNamespace(
        Event=Event,
        Stream=type("Stream", (), {"synchronize": lambda self: None}),
        synchronize=lambda: None,
        is_initialized=lambda: True,
        is_current_stream_capturing=lambda: False,
        current_device=lambda: 0,
        memory_stats=memory_stats,
    )
    of_cpu = lambda kind, index: torch.device("cpu")  # noqa: E731  where the tensors really are
    stand_in = types.SimpleNamespace(cuda=cuda, Tensor=type("Tensor", (torch.Tensor,), {}), device=of_cpu)
    torch.cuda.mem_get_info = lambda device: (TOTAL - OUTSIDE - peak - 100_000, TOTAL)
    hook.steps.now_and_then.append(hook.Device(stand_in).look)
    hook.memory.attach()


attach()
