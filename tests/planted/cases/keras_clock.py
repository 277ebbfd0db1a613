"""What the planted scripts on Keras and TensorFlow share: their own clock and a small network. As in training.py,
nothing here knows of any profiler."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras  # noqa: E402
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402
from step_clock import StepClock  # noqa: E402

BATCH, WIDTH = 96, 640


class KerasClock(StepClock, keras.callbacks.Callback):
    """Keras says itself where a step ends. `wait` is from where a batch is asked of the pipeline to where the step has
    it, by TensorFlow's own clock: beyond what the function in the pipeline takes, to hand it a batch, to take its
    answer and to pass that on keep the training waiting for another millisecond."""

    def __init__(self) -> None:
        keras.callbacks.Callback.__init__(self)
        StepClock.__init__(self)
        self._asked = tf.Variable(0.0, trainable=False, dtype="float64")  # seconds since 1970
        self._waited = tf.Variable(0.0, trainable=False, dtype="float64")

    def batch_is_asked(self) -> tf.Operation:
        return self._asked.assign(tf.timestamp())

    def batch_is_there(self, inputs: tf.Tensor) -> None:
        with tf.control_dependencies([inputs]):
            self._waited.assign(tf.timestamp() - self._asked)

    def on_train_batch_end(self, batch: int, logs: dict | None = None) -> None:
        self._now["wait"] = float(self._waited.numpy())
        self.step_done()


class Clocked(keras.Sequential):
    """A model that tells the clock when a batch is there."""

    clock: KerasClock

    def train_step(self, data: tuple) -> dict:
        self.clock.batch_is_there(data[0])
        return super().train_step(data)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=sys.modules["__main__"].__doc__)
    parser.add_argument("--truth", type=Path, required=True, help="where to write what this script measured")
    parser.add_argument("--photos", type=Path, help="a folder of JPEG files")
    parser.add_argument("--scratch", type=Path, help="a folder to write to")
    parser.add_argument("--steps", type=int, default=100)
    keras.utils.set_random_seed(0)
    return parser.parse_args()


def network(kind: type[keras.Sequential] = keras.Sequential) -> keras.Model:
    layers = [keras.layers.Dense(WIDTH, activation="relu") for _ in range(3)]
    return kind([keras.Input((WIDTH,)), *layers, keras.layers.Dense(10)])


def compiled(clock: KerasClock) -> keras.Model:
    model = network(Clocked)
    model.clock = clock
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer="sgd", loss=loss, jit_compile=False)
    return model


def rows(steps: int) -> tf.data.Dataset:
    """Batches that cost nothing."""
    inputs = np.random.rand(BATCH, WIDTH).astype("float32")
    return tf.data.Dataset.from_tensors((inputs, np.arange(BATCH) % 10)).repeat(steps)


def prepared(dataset: tf.data.Dataset, function, clock: KerasClock | None = None) -> tf.data.Dataset:
    """With a Python function in the pipeline, called for each batch while the training waits for it: without the
    prefetch that TensorFlow would add by itself. The clock is told when that begins."""
    options = tf.data.Options()
    options.experimental_optimization.inject_prefetch = False

    def prepare(inputs, labels):
        with tf.control_dependencies([] if clock is None else [clock.batch_is_asked()]):
            changed = tf.numpy_function(function, [inputs], tf.float32)
        changed.set_shape(inputs.shape)
        return changed, labels

    return dataset.map(prepare).with_options(options)
