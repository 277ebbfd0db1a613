"""
NAME     A loop of its own on TensorFlow, with one sample in forty that takes a quarter of a second
PLANTED  the map waits for that sample; a prefetch of two batches does not cover it
EXPECT   input-bound serial-map
TRUTH    wait
NEEDS    python-keras python-tensorflow
"""

import itertools
import time

import keras
import numpy as np
import tensorflow as tf
from keras_clock import StepClock, arguments, network, prepared, rows


def main() -> None:
    args = arguments()
    clock, model, optimizer = StepClock(), network(), keras.optimizers.SGD()
    loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    numbers = itertools.count()

    def fetch(inputs: np.ndarray) -> np.ndarray:
        time.sleep(0.25 if next(numbers) % 40 == 7 else 0.001)
        return inputs

    @tf.function
    def step(inputs, labels):
        with tf.GradientTape() as tape:
            loss = loss_of(labels, model(inputs, training=True))
        variables = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return loss

    batches = iter(prepared(rows(2 * args.steps), fetch).prefetch(2))
    while True:
        with clock.timed("wait"):
            batch = next(batches, None)
        if batch is None:
            break
        step(*batch)
        clock.step_done()
    clock.write(args.truth)


if __name__ == "__main__":
    main()
