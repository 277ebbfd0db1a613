"""
NAME     JAX: sentences of ever new lengths
PLANTED  every second batch has a length that no batch had before, and its program is compiled
EXPECT   recompilation shapes
TRUTH    new length
NEEDS    jax
"""

import numpy as np
from jax_training import network, step
from training import StepClock, arguments

WIDTH = 1024
ROWS = 200  # of the batches between


def main() -> None:
    args = arguments()
    clock = StepClock()
    weights = network(WIDTH, WIDTH)
    everything = np.random.RandomState(0).randn(2 * ROWS, WIDTH).astype(np.float32)
    labels = np.arange(2 * ROWS) % 10
    for number in range(args.steps // 2):
        length = ROWS + (number + 1) // 2 if number % 2 else ROWS
        with clock.timed("new length" if number % 2 else "call"):
            weights, loss = step(weights, everything[:length], labels[:length])
        with clock.timed("compute"):
            loss.block_until_ready()
        clock.step_done()
    clock.write(args.truth)


if __name__ == "__main__":
    main()
