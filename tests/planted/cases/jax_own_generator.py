"""
NAME     JAX: a generator that decodes every batch in the training thread
PLANTED  the loop goes through a generator, which takes longer than the step that runs beside it
EXPECT   input-bound own-iterator
TRUTH    wait
NEEDS    jax
"""

from collections.abc import Iterator

from jax_training import network, stacked, step
from training import SIZE, Photos, StepClock, arguments


def batches(photos: Photos, size: int) -> Iterator[tuple]:
    for begin in range(0, len(photos), size):
        yield stacked([photos[index] for index in range(begin, begin + size)])


def main() -> None:
    args = arguments()
    clock = StepClock()
    weights = network(3 * SIZE * SIZE, 64)
    photos = Photos(args.photos, length=16 * args.steps)
    for images, labels in clock.waits(batches(photos, 16)):
        weights, loss = step(weights, images, labels)
        clock.step_done()
    print(float(loss))
    clock.write(args.truth)


if __name__ == "__main__":
    main()
