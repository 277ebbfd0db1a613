"""What makes one run of a program differ from the next, and one kernel from its twin."""

from __future__ import annotations

import random

POOL = 4096
# Relative standard deviations, as far as repeated kernels and calls in the shared traces differ on quiet machines.
KERNEL, COPY, COLLECTIVE, HOST = 0.012, 0.02, 0.05, 0.10
STEP, RUN_DEVICE, RUN_HOST = 0.01, 0.004, 0.012
HICCUP_CHANCE, HICCUP_NS = 1 / 4000, (40_000, 300_000)  # the operating system takes the core away


class Noise:
    """Factors around 1 from a seed; with `on=False` nothing varies at all."""

    def __init__(self, seed: object, on: bool = True) -> None:
        self.random = random.Random(f"noise {seed}")
        self.on = on
        draw = self.random.gauss
        self._pool = [max(-2.5, min(2.5, draw(0, 1))) for _ in range(POOL)] if on else [0.0]
        self._next = 0
        self.device = 1 + draw(0, RUN_DEVICE) if on else 1.0
        self.host = 1 + draw(0, RUN_HOST) if on else 1.0
        self._step = 1.0

    def new_step(self) -> None:
        if self.on:
            self._step = 1 + self.random.gauss(0, STEP)

    def _unit(self) -> float:
        self._next += 1
        if self._next >= len(self._pool):
            self._next = self.random.randrange(len(self._pool)) if self.on else 0
        return self._pool[self._next]

    def kernel_ns(self, nominal: float) -> int:
        return round(nominal * self.device * (1 + KERNEL * self._unit()))

    def copy_ns(self, nominal: float) -> int:
        return round(nominal * (1 + COPY * self._unit()))

    def collective_ns(self, nominal: float) -> int:
        return round(nominal * (1 + COLLECTIVE * self._unit()))

    def host_ns(self, nominal: float) -> int:
        spent = nominal * self.host * self._step * (1 + HOST * self._unit())
        if self.on and self.random.random() < HICCUP_CHANCE:
            spent += self.random.uniform(*HICCUP_NS)
        return round(spent)

    def varied_ns(self, nominal: float, spread: float) -> int:
        """Of work that varies by itself: decoding a batch, writing a file."""
        if not self.on:
            return round(nominal)
        return round(nominal * max(0.2, 1 + spread * self._unit()))
