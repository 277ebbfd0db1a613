"""
NAME     JAX: the loss of every step is read at once
PLANTED  float(loss) waits for the step, so that nothing computes while the next batch is made
EXPECT   sync-bound each-step
TRUTH    all but blocked
LINE     float(loss)
NEEDS    jax two-cores
"""

import numpy as np
from jax_training import network, step
from training import StepClock, arguments

WIDTH = 1024
ROWS = 384


def main() -> None:
    args = arguments()
    clock = StepClock()
    weights = network(WIDTH, WIDTH)
    everything = np.random.RandomState(0).randint(256, size=(ROWS, WIDTH)).astype(np.uint8)
    labels = np.arange(ROWS) % 10
    total = 0.0
    for number in range(3 * args.steps):
        flipped = everything[:, ::-1] if number % 2 else everything
        batch = np.log1p(flipped.astype(np.float32)) / np.log(256)
        weights, loss = step(weights, batch, labels)
        with clock.timed("blocked"):
            total += float(loss)
        clock.step_done()
    clock.write(args.truth)


if __name__ == "__main__":
    main()
