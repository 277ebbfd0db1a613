"""
NAME     JAX: a loop without a fault
PLANTED  nothing: batches lie in memory, the loss is read every twenty steps, the last one waits for all
EXPECT   healthy
NEEDS    jax
"""

import numpy as np
from jax_training import network, step
from training import StepClock, arguments

WIDTH = 768
ROWS = 512


def main() -> None:
    args = arguments()
    clock = StepClock()
    weights = network(WIDTH, WIDTH)
    batch = np.random.RandomState(0).randn(ROWS, WIDTH).astype(np.float32)
    labels = np.arange(ROWS) % 10
    for number in range(3 * args.steps):
        weights, loss = step(weights, batch, labels)
        if number % 20 == 19:
            print(float(loss))
        clock.step_done()
    clock.write(args.truth)


if __name__ == "__main__":
    main()
