"""Loops of the script's own on TensorFlow: a tf.function that takes a batch or an iterator, and eager code."""

from __future__ import annotations

import importlib.util
import json

import pytest
from channel_reader import BACKWARD, CHECKPOINT, FORWARD, NEXT, OTHER

pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec("tensorflow") is None, reason="no TensorFlow here"),
    pytest.mark.timeout(300),
]

BEGIN = """
import json, sys, time
import tensorflow as tf
tf.random.set_seed(5)
rows = tf.data.Dataset.from_tensor_slices(tf.random.uniform((150, 8))).batch(32).prefetch(tf.data.AUTOTUNE)
weights = tf.Variable(tf.random.normal((8, 1)))
def tell(losses):
    print(json.dumps([float(loss) for loss in losses]))
"""

TAKES_A_BATCH = """
class Model(tf.Module):
    def __init__(self):
        self.weights = weights
    @tf.function
    def step(self, x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.nn.dropout(x, 0.2) @ self.weights) ** 2
        self.weights.assign_sub(0.1 * tape.gradient(loss, self.weights))
        return loss

@tf.function
def evaluate(x):
    return tf.reduce_mean(x @ weights)

model, losses = Model(), []
kept = tf.train.Checkpoint(weights=weights)
for epoch in range(3):
    for x in rows:
        losses.append(model.step(x))
    losses += [evaluate(x) for x in rows.take(2)]
    kept.write("kept")
tell(losses)
"""

KERAS_OPTIMIZER = """
import keras
keras.utils.set_random_seed(5)
model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(1)])
optimizer = keras.optimizers.Adam()
@tf.function
def step(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(model(x, training=True) ** 2)
    optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
    return loss
tell([step(x) for _ in range(3) for x in rows])
"""

TAKES_AN_ITERATOR = """
@tf.function
def step(iterator):
    x = next(iterator)
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(x @ weights) ** 2
    weights.assign_sub(0.1 * tape.gradient(loss, weights))
    return loss
losses = []
for _ in range(3):
    iterator = iter(rows)
    losses += [step(iterator) for _ in range(5)]
tell(losses)
"""

EAGER = """
import keras
optimizer, losses = keras.optimizers.SGD(0.1), []
weights = keras.Variable(weights)
for _ in range(2):
    for x in rows:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(x @ weights.value) ** 2
        optimizer.apply_gradients([(tape.gradient(loss, weights.value), weights)])
        losses.append(loss)
tell(losses)
"""


def both_ways(runner, text):
    env = {"TF_CPP_MIN_LOG_LEVEL": "3", "KERAS_BACKEND": "tensorflow"}
    channel, output = runner.run(BEGIN + text, env=env)
    alone, _ = runner.start([runner.python, runner.script(BEGIN + text)], env, hooked=False)
    assert (alone.returncode, alone.stdout) == (0, output), "the script's results are another with the hook"
    (process,) = channel.trainers
    return process, json.loads(output)


def training_batches(process):
    ident = process.say("training_loader")[-1]["id"]
    return [wait for wait in process.batches if wait.id == ident]


@pytest.mark.long
def test_a_compiled_step_that_takes_a_batch_is_the_step(bare):
    process, losses = both_ways(bare, TAKES_A_BATCH)
    # It cannot be seen that the first call applied its gradients: an optimizer might have stepped after it.
    assert len(process.steps) == 15 - 1 and len(losses) == 15 + 6
    batches = training_batches(process)
    assert [wait.a for wait in batches] == [32, 32, 32, 32, 22] * 3
    assert len(process.say("loader")) == 2, "each loader once, however often it is iterated"
    assert len(process.of(OTHER, CHECKPOINT)) == 3
    assert process.facts["framework"] == "tensorflow"
    assert process.facts["tf_data"]["prefetch"] == "AUTOTUNE" and process.facts["tf_data"]["prefetch_at_end"]


@pytest.mark.long
def test_a_compiled_step_with_keras_optimizer_counts_from_the_first(bare):
    process, losses = both_ways(bare, KERAS_OPTIMIZER)
    assert len(process.steps) == len(losses) == 15
    assert sum(wait.a for wait in process.batches) == 450
    assert {span.a for span in process.of(FORWARD)} == {2}, "the whole step"


@pytest.mark.long
def test_batches_that_a_compiled_step_takes_itself_are_seen(bare):
    process, losses = both_ways(bare, TAKES_AN_ITERATOR)
    assert len(process.steps) == 14 and len(losses) == 15, "but for the first, as above"
    assert [wait.a for wait in process.of(NEXT)] == ([32, 32, 32, 32, 22] * 3)[1:]


@pytest.mark.long
def test_eager_passes_and_steps_are_told_apart(bare):
    process, losses = both_ways(bare, EAGER)
    assert len(process.steps) == len(losses) == 10
    assert len(process.of(BACKWARD)) == 10
    assert sum(wait.a for wait in process.batches) == 300


@pytest.mark.long
def test_tensorflow_without_training_says_hello_and_nothing_more(bare):
    process, _ = both_ways(bare, "tell([])")
    assert not process.steps and not process.say("loader")


@pytest.mark.long
def test_a_hook_that_fails_in_a_graph_does_not_disturb(bare):
    text = """
inside = sys.modules.get("_fullbore_hook.tensorflow.inside")
if inside is not None:
    def broken(*_):
        raise RuntimeError("planted")
    inside.leading = broken
"""
    env = {"TF_CPP_MIN_LOG_LEVEL": "3"}
    alone, _ = bare.start([bare.python, bare.script(BEGIN + TAKES_AN_ITERATOR)], env, hooked=False)
    hooked, directory = bare.start([bare.python, bare.script(BEGIN + text + TAKES_AN_ITERATOR)], env)
    assert (hooked.returncode, hooked.stdout) == (0, alone.stdout), hooked.stderr
    said = "".join(file.read_text() for file in directory.glob("*.jsonl"))
    assert said.count("planted") == 1
