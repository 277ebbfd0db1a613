"""Keras's `fit` and its relatives, unmodified, on each backend: steps and samples as the program counts them itself,
and results as without the hook."""

from __future__ import annotations

import importlib.util
import json
import textwrap

import pytest
from channel_reader import CHECKPOINT, FORWARD, NEXT, OPTIMIZER, OTHER

BACKENDS = [
    pytest.param(name, marks=pytest.mark.skipif(importlib.util.find_spec(name) is None, reason=f"no {name} here"))
    for name in ("tensorflow", "jax", "torch")
]
pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec("keras") is None, reason="no Keras here"),
    pytest.mark.timeout(300),
]

BEGIN = """
import json, sys
import numpy as np
import keras

class Count(keras.callbacks.Callback):
    steps = 0
    def on_train_batch_end(self, batch, logs=None):
        self.steps += 1

def model_of(**options):
    model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(16, activation="relu"),
                              keras.layers.Dropout(0.3), keras.layers.Dense(4, activation="softmax")])
    model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", **options)
    return model

def tell(steps, samples, losses):
    print(json.dumps({"steps": steps, "samples": samples, "losses": [float(loss) for loss in losses]}))

keras.utils.set_random_seed(3)
x = np.random.rand(150, 8).astype("float32")
y = np.random.randint(0, 4, 150)
count = Count()
"""

FIT = """
save = keras.callbacks.ModelCheckpoint("kept.weights.h5", save_weights_only=True)
history = model_of().fit(x, y, batch_size=32, epochs=3, validation_data=(x[:40], y[:40]), verbose=0,
                         callbacks=[count, save])
tell(count.steps, 3 * 150, history.history["loss"])
"""

PY_DATASET = """
class Rows(keras.utils.PyDataset):
    def __len__(self):
        return 5
    def __getitem__(self, index):
        return x[index * 32 : (index + 1) * 32], y[index * 32 : (index + 1) * 32]
history = model_of().fit(Rows(workers=2), epochs=2, shuffle=False, verbose=0, callbacks=[count])
tell(count.steps, 2 * 150, history.history["loss"])
"""

BATCHES = """
model = model_of()
losses = [model.train_on_batch(x[at : at + 32], y[at : at + 32]) for at in range(0, 150, 32)]
tell(len(losses), 150, losses)
"""

OWN_STEP = """
class Twice(keras.Model):
    def __init__(self):
        super().__init__()
        self.dense = keras.layers.Dense(4, activation="softmax")
    def call(self, inputs):
        return self.dense(inputs)
    def train_step(self, *given):
        return super().train_step(*given)
model = Twice()
model.compile(optimizer="sgd", loss="sparse_categorical_crossentropy", run_eagerly=True)
history = model.fit(x, y, batch_size=50, epochs=2, verbose=0, callbacks=[count])
tell(count.steps, 2 * 150, history.history["loss"])
"""


def both_ways(runner, text, backend):
    """(what the hook recorded, what the program printed) where the program printed the same without it."""
    env = {"KERAS_BACKEND": backend, "TF_CPP_MIN_LOG_LEVEL": "3"}
    channel, output = runner.run(BEGIN + text, env=env)
    alone, _ = runner.start([runner.python, runner.script(BEGIN + text)], env, hooked=False)
    assert (alone.returncode, alone.stdout) == (0, output), "the script's results are another with the hook"
    (process,) = channel.trainers
    return process, json.loads(output.splitlines()[-1])


def samples_of(process):
    return sum(wait.a for wait in process.batches)


@pytest.mark.long
@pytest.mark.parametrize("backend", BACKENDS)
def test_fit_on_arrays_is_recorded_as_the_program_counts(bare, backend):
    process, counted = both_ways(bare, FIT, backend)
    assert (len(process.steps), samples_of(process)) == (counted["steps"], counted["samples"]) == (15, 450)
    assert len([span for span in process.of(FORWARD) if span.a == 0]) == 3, "evaluations"
    assert len(process.of(OTHER, CHECKPOINT)) == 3
    loader = process.one("loader")
    assert (loader["library"], loader["args"]["batch_size"], loader["dataset_len"]) == ("keras.arrays", 32, 150)
    facts = process.facts
    assert (facts["framework"], facts["keras_backend"]) == ("keras", backend)
    assert (facts["optimizer"], facts["model"], facts["parameters"]) == ("Adam", "Sequential", 212)
    assert "ModelCheckpoint" in facts["callbacks"]


@pytest.mark.long
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_dataset_of_the_scripts_own_is_named(bare, backend):
    process, counted = both_ways(bare, PY_DATASET, backend)
    assert (len(process.steps), samples_of(process)) == (counted["steps"], counted["samples"])
    loader = process.one("loader")
    assert (loader["library"], loader["dataset"], loader["args"]["num_workers"]) == ("keras.PyDataset", "Rows", 2)


@pytest.mark.long
@pytest.mark.parametrize("backend", BACKENDS)
def test_each_train_on_batch_is_a_step(bare, backend):
    process, counted = both_ways(bare, BATCHES, backend)
    assert len(process.steps) == counted["steps"] == 5
    assert sum(span.b for span in process.of(FORWARD)) == counted["samples"], "which no loader gave"


@pytest.mark.long
@pytest.mark.parametrize("backend", BACKENDS)
def test_an_own_train_step_in_eager_code_is_counted_once(bare, backend):
    process, counted = both_ways(bare, OWN_STEP, backend)
    assert (len(process.steps), samples_of(process)) == (counted["steps"], counted["samples"]) == (6, 300)


@pytest.mark.long
@pytest.mark.parametrize("backend", BACKENDS[:2])
def test_several_steps_in_one_execution_are_counted_as_such(bare, backend):
    text = """
    history = model_of(steps_per_execution=4).fit(x, y, batch_size=15, epochs=2, verbose=0)
    tell(2 * 10, 2 * 150, history.history["loss"])
    """
    process, counted = both_ways(bare, textwrap.dedent(text), backend)
    assert len(process.steps) == counted["steps"]
    assert samples_of(process) == counted["samples"]


@pytest.mark.long
def test_a_tf_data_pipeline_is_described_and_its_waits_are_timed(bare):
    pytest.importorskip("tensorflow")
    text = """
import time
import tensorflow as tf
def slow(a):
    time.sleep(0.02)
    return a
def prepare(a, b):
    a = tf.numpy_function(slow, [a], tf.float32)
    a.set_shape((None, 8))
    return a, b
rows = tf.data.Dataset.from_tensor_slices((x, y)).cache().batch(32).map(prepare)
options = tf.data.Options()
options.experimental_optimization.inject_prefetch = False  # which TensorFlow adds by itself
rows = rows.with_options(options)
history = model_of().fit(rows, epochs=2, verbose=0, callbacks=[count])
tell(count.steps, 300, history.history["loss"])
"""
    process, counted = both_ways(bare, text, "tensorflow")
    assert (len(process.steps), samples_of(process)) == (counted["steps"], counted["samples"]) == (10, 300)
    waits_s = sorted(wait.ns / 1e9 for wait in process.of(NEXT) if wait.a)
    assert 0.02 < waits_s[len(waits_s) // 2] < 0.04
    loader = process.one("loader")
    assert (loader["library"], loader["stages"]) == ("tf.data", "from_tensor_slices -> cache -> batch -> map")
    options = process.facts["tf_data"]
    assert options["num_parallel_calls"] == {"map": [None]} and options["cache"] and "prefetch" not in options


@pytest.mark.long
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_hook_that_fails_does_not_disturb(bare, backend):
    text = """
import sys
calls = sys.modules.get("_fullbore_hook.core.calls")
if calls is not None:
    def broken(*_):
        raise RuntimeError("planted")
    calls.count_step = broken
"""
    env = {"KERAS_BACKEND": backend, "TF_CPP_MIN_LOG_LEVEL": "3"}
    alone, _ = bare.start([bare.python, bare.script(BEGIN + FIT)], env, hooked=False)
    hooked, directory = bare.start([bare.python, bare.script(BEGIN + text + FIT)], env)
    assert (hooked.returncode, hooked.stdout) == (0, alone.stdout), hooked.stderr
    said = "".join(file.read_text() for file in directory.glob("*.jsonl"))
    assert said.count("planted") == 1 and "the training goes on without it" in said


@pytest.mark.long
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_loop_of_the_scripts_own_steps_where_keras_optimizer_steps(bare, backend):
    if backend == "jax":
        pytest.skip("its gradients are functional: the folder for JAX sees such a loop")
    step = {
        "tensorflow": """
import tensorflow as tf
def gradients():
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(model(x[:10])[:, 0])
    return loss, tape.gradient(loss, model.trainable_variables)
""",
        "torch": """
import torch
def gradients():
    loss = model(x[:10])[:, 0].mean()
    model.zero_grad()
    loss.backward()
    return loss.detach(), [weight.value.grad for weight in model.trainable_weights]
""",
    }[backend]
    loop = """
model, optimizer, losses = model_of(), keras.optimizers.SGD(0.1), []
for _ in range(7):
    loss, found = gradients()
    if keras.backend.backend() == "torch":
        with torch.no_grad():
            optimizer.apply(found, model.trainable_weights)
    else:
        optimizer.apply_gradients(zip(found, model.trainable_variables))
    losses.append(loss)
tell(7, 70, losses)
"""
    process, _ = both_ways(bare, step + loop, backend)
    assert len(process.steps) == 7 == len(process.of(OPTIMIZER))
    assert process.facts["framework"] == "keras" and process.facts["optimizer"] == "SGD"
