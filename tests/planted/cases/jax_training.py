"""What the planted scripts of JAX share: one thread, a small network, and a compiled step. Nothing here knows of any
profiler, and the step is found by nobody's help.
"""

from __future__ import annotations

import os

os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

State = list


def network(inputs: int, width: int) -> State:
    """The weights of three layers."""
    sizes = (inputs, width, width, 10)
    keys = jax.random.split(jax.random.key(0), 3)
    return [0.02 * jax.random.normal(key, shape) for key, shape in zip(keys, zip(sizes[:-1], sizes[1:]))]


def loss_of(weights: State, inputs: jax.Array, labels: jax.Array) -> jax.Array:
    for layer in weights[:-1]:
        inputs = jax.nn.relu(inputs @ layer)
    chances = jax.nn.log_softmax(inputs @ weights[-1])
    return -jnp.mean(jnp.take_along_axis(chances, labels[:, None], axis=1))


@jax.jit
def step(weights: State, inputs: jax.Array, labels: jax.Array) -> tuple[State, jax.Array]:
    loss, gradients = jax.value_and_grad(loss_of)(weights, inputs, labels)
    return [layer - 0.01 * gradient for layer, gradient in zip(weights, gradients)], loss


def stacked(rows: list) -> tuple[np.ndarray, np.ndarray]:
    """A batch of photos and their labels, as arrays of NumPy."""
    return np.stack([np.asarray(pixels).reshape(-1) for pixels, _ in rows]), np.array([label for _, label in rows])
