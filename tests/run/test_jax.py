"""Unmodified trainings with JAX are explained."""

from __future__ import annotations

import sys

import pytest

pytest.importorskip("jax")

PROGRAM = """
import sys, time
import jax, jax.numpy as jnp, numpy as np

def batches():
    for number in range(150):
        time.sleep(0.02)
        yield np.full((32, 8 + number if "--grow" in sys.argv else 8), number, np.float32)

@jax.jit
def step(weights, batch):
    return weights - 0.1 * jnp.tanh(batch).sum(axis=1).mean() * weights

weights = jnp.ones((8, 8))
for batch in batches():
    weights = step(weights, batch)
print(float(weights.sum()))
"""


def first_finding(fullbore, *arguments: str) -> tuple[dict, dict]:
    done = fullbore.run(sys.executable, fullbore.script("train.py", PROGRAM), *arguments)
    assert done.code == 0, done.stderr
    return done.report["findings"][0], done.report


def test_a_slow_generator_is_found_and_steps_and_samples_are_counted(fullbore):
    first, report = first_finding(fullbore)
    window = report["window"]
    assert window["steps"] + window["warmup_steps"] == 150
    assert (first["id"], first["cause"]) == ("input-bound", "own-iterator")
    assert first["share"] > 0.6
    throughput = report["throughput"]
    assert throughput["samples_per_s"] == pytest.approx(32 * throughput["steps_per_s"], rel=0.02)


@pytest.mark.long
def test_shapes_that_keep_growing_are_a_recompilation(fullbore):
    first, report = first_finding(fullbore, "--grow")
    assert (first["id"], first["cause"]) == ("recompilation", "shapes")
    assert "step was compiled 150 times" in first["title"]
    assert (
        first["where"][0]["file"].endswith("train.py")
        and "step(weights" in PROGRAM.splitlines()[first["where"][0]["line"] - 1]
    )
    assert report["step_time"]["host_other_parts"]["compilation"] == pytest.approx(first["share"], abs=0.01)
