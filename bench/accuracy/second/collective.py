"""Collectives between ranks: kernels that wait for the slowest rank, then move bytes over the links."""

from second.engine import Engine
from second.noise import Noise
from second.program import Exchange


class Collective:
    """One collective: starts moving when the last rank's kernel runs."""

    def __init__(self, world: "World", kind: str, size: float):
        self.world, self.kind, self.size = world, kind, size
        self.arrived = []

    def arrive(self, gpu, task):
        """A rank's kernel has started."""
        self.arrived.append((gpu, task))
        if len(self.arrived) == self.world.ranks:
            time = self.world.transfer_ns(self.kind, self.size) * self.world.noise.factor(0.04)
            if any(gpu.running for gpu, _ in self.arrived):
                time *= self.world.exchange.contention
            self.world.engine.at(self.world.engine.now + time, self._finish)

    def _finish(self):
        for gpu, task in self.arrived:
            gpu.finish_collective(task)


class World:
    """All ranks of a run: collectives are matched by their order."""

    def __init__(self, engine: Engine, noise: Noise, ranks: int, exchange: Exchange):
        self.engine, self.noise, self.ranks, self.exchange = engine, noise, ranks, exchange
        self._collectives = []

    def collective(self, index: int, kind: str, size: float) -> Collective:
        """The index-th collective; all ranks give the same kind and size."""
        while len(self._collectives) <= index:
            self._collectives.append(Collective(self, kind, size))
        return self._collectives[index]

    def transfer_ns(self, kind: str, size: float) -> float:
        """Ring: 2 (n - 1) / n of the bytes over each link for an all-reduce, all of them once for a broadcast
        (nccl-tests, PERFORMANCE.md), and a latency for each hop."""
        ranks = self.ranks
        share = 2.0 * (ranks - 1) / ranks if kind == "allreduce" else 1.0
        return self.exchange.latency * (0.6 + 0.2 * ranks) + share * size / self.exchange.link
