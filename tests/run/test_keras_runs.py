"""An unmodified Keras program that waits for its data is explained, on each backend."""

import importlib.util
import sys

import pytest

PROGRAM = """
import time
import keras
import numpy as np

class Slow(keras.utils.PyDataset):
    def __len__(self):
        return 50
    def __getitem__(self, index):
        time.sleep(0.03)
        return np.ones((16, 64), "float32"), np.zeros((16, 1), "float32")

model = keras.Sequential([keras.Input((64,)), keras.layers.Dense(64), keras.layers.Dense(1)])
model.compile(optimizer="sgd", loss="mse")
model.fit(Slow(), epochs=2, verbose=0)
"""
BACKENDS = [
    pytest.param(name, marks=pytest.mark.skipif(importlib.util.find_spec(name) is None, reason=f"no {name} here"))
    for name in ("tensorflow", "jax", "torch")
]


@pytest.mark.long
@pytest.mark.skipif(importlib.util.find_spec("keras") is None, reason="no Keras here")
@pytest.mark.parametrize("backend", BACKENDS)
def test_what_keras_waits_for_is_found(fullbore, backend):
    script = fullbore.script("train.py", PROGRAM)
    done = fullbore.run(sys.executable, script, env={"KERAS_BACKEND": backend, "TF_CPP_MIN_LOG_LEVEL": "3"})
    assert done.code == 0, done.stderr
    window = done.report["window"]
    assert window["steps"] + window["warmup_steps"] == 100
    first = done.report["findings"][0]
    assert first["id"] == "input-bound" and first["share"] > 0.5, done.report["findings"]
    assert done.report["throughput"]["samples_per_s"] > 0
