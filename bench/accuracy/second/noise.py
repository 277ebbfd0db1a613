"""Random factors of a run: every source of variation in the simulation draws from one seeded object of this kind."""

import math
import random

TABLE = 4096  # factors drawn in advance, walked through from a drawn place: cheaper than one draw for each operator


def lognormal_table(random_source: random.Random, sigma: float) -> list:
    """Factors with mean 1: exp(N(-sigma^2/2, sigma))."""
    return [math.exp(random_source.gauss(-sigma * sigma / 2, sigma)) for _ in range(TABLE)]


class Noise:
    """Jitter of the host, of kernels and of whole steps, drawn from one key."""

    def __init__(self, key: str):
        self.random = random.Random(key)
        self._host = lognormal_table(self.random, self.random.uniform(0.10, 0.25))  # drawn: jitter of one call
        self._kernel = lognormal_table(self.random, self.random.uniform(0.006, 0.03))  # drawn: clocks, DRAM refresh
        self._at = self.random.randrange(TABLE)

    def host(self) -> float:
        """Factor for the time of one operator on the host."""
        self._at = (self._at + 1) % TABLE
        return self._host[self._at]

    def kernel(self) -> float:
        """Factor for the time of one kernel."""
        self._at = (self._at + 1) % TABLE
        return self._kernel[self._at]

    def factor(self, sigma: float) -> float:
        """One lognormal factor with mean 1."""
        return math.exp(self.random.gauss(-sigma * sigma / 2, sigma))

    def chance(self, probability: float) -> bool:
        """True with this probability."""
        return self.random.random() < probability

    def stall(self, mean_ns: float) -> float:
        """A rare long stall: exponential."""
        return self.random.expovariate(1.0 / mean_ns)
