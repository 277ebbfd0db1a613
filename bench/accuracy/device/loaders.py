"""Where batches come from: the training thread itself, or worker processes that run ahead of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .engine import Steps
from .noise import Noise
from .program import Program

if TYPE_CHECKING:
    from .host import Host

PREFETCH = 2  # batches in the making for each worker (DataLoader's prefetch_factor)
PINNED_MS = 0.1  # next() with a batch ready that another thread has taken and pinned
MAPPED_MS, MAPPED_NS_PER_BYTE = 1.5, 0.32  # one in shared memory: bench/explain/batch_hand_over.py, on one machine
MACHINES = (0.5, 1.2)  # on others it takes so many times as long


class InlineLoader:
    """num_workers=0."""

    kind = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"

    def __init__(self, program: Program, host: Host, slower: float) -> None:
        self.program, self.host, self.slower = program, host, slower

    def next(self) -> Steps:
        program, host = self.program, self.host
        begin = host.engine.now
        external = host.next_external()
        ns = program.fetch_ms * 1e6 * self.slower
        if program.pinned:
            ns += 1e9 * program.batch_bytes / program.pin_rate
        yield host.noise.varied_ns(ns, program.fetch_spread)
        host.did("data", begin)
        host.span("user_annotation", self.kind, begin, external)


class WorkerLoader:
    """Workers take batches in turn and one after another; the training gets them in order."""

    kind = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"

    def __init__(self, program: Program, host: Host, slower: float) -> None:
        self.program, self.host, self.slower = program, host, slower
        self.free = [0] * program.workers
        self.ready: list[int] = []
        self.taken = 0
        self.pinned_until = 0
        self.noise = Noise(f"workers {program.key} {host.noise.random.random()}", host.noise.on)
        mapped = MAPPED_MS * 1e6 + MAPPED_NS_PER_BYTE * program.batch_bytes
        this_machine = Noise(f"machine {program.key}", True).random.uniform(*MACHINES)
        self.hand_over_ns = PINNED_MS * 1e6 if program.pinned else this_machine * mapped
        for _ in range(program.workers * PREFETCH):
            self._dispatch(0)

    def _dispatch(self, now: int) -> None:
        program = self.program
        worker = len(self.ready) % program.workers
        ns = self.noise.varied_ns(program.fetch_ms * 1e6 * self.slower, program.fetch_spread)
        self.free[worker] = max(now, self.free[worker]) + ns
        ready = self.free[worker]
        if program.pinned:
            ready = max(ready, self.pinned_until) + round(1e9 * program.batch_bytes / program.pin_rate)
            self.pinned_until = ready
        self.ready.append(ready)

    def next(self) -> Steps:
        host = self.host
        begin = host.engine.now
        external = host.next_external()
        ready = self.ready[self.taken]
        self.taken += 1
        if ready > host.engine.now:
            yield ready - host.engine.now
        self._dispatch(host.engine.now)
        yield host.noise.varied_ns(self.hand_over_ns, 0.2)
        host.did("data", begin)
        host.span("user_annotation", self.kind, begin, external)


def loader_of(program: Program, host: Host) -> InlineLoader | WorkerLoader:
    slower = program.slow_fetch if host.rank == program.slow_rank else 1.0
    return (WorkerLoader if program.workers else InlineLoader)(program, host, slower)
