"""A DataLoader: when each batch is ready, given when the ones before it were taken."""

from second.noise import Noise
from second.program import Feed, Loader

PIN_RATE = 8.0  # GB/s: one thread that copies into pinned memory (drawn by hand)


class Batches:
    """Workers take batches in turn, each works on its own in order; the main process takes them in order."""

    def __init__(self, loader: Loader, feed: Feed, noise: Noise, slow: float = 1.0):
        self.loader, self.feed, self.noise, self.slow = loader, feed, noise, slow
        self._free = [0.0] * max(loader.workers, 1)
        self._ready = {}
        self._pin_free = 0.0
        self._taken = 0
        for batch in range(loader.workers * loader.prefetch):
            self._request(batch, 0.0)

    def _load_ns(self) -> float:
        return self.loader.batch_ns * self.slow * self.noise.factor(self.loader.sigma)

    def _pin_ns(self) -> float:
        return self.feed.batch_bytes / PIN_RATE if self.feed.pinned else 0.0

    def _request(self, batch: int, now: float):
        worker = batch % self.loader.workers
        ready = max(self._free[worker], now) + self._load_ns() * self.loader.contention
        self._free[worker] = ready
        if self.feed.pinned:
            self._pin_free = ready = max(ready, self._pin_free) + self._pin_ns()
        self._ready[batch] = ready

    def take(self, now: float) -> float:
        """How long next() takes at this time."""
        if not self.loader.workers:
            return self._load_ns() + self._pin_ns()
        batch = self._taken
        self._taken += 1
        when = max(now, self._ready.pop(batch))
        self._request(batch + self.loader.workers * self.loader.prefetch, when)
        return when - now + self.loader.get_ns * self.noise.host()
