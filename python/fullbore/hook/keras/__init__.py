"""Keras 3 on TensorFlow, PyTorch and JAX: `fit`, `train_on_batch`, and Keras's optimizers in loops of the script's own.

trainers     the training function as the step; evaluate and predict
data         what `fit` iterates: arrays, a PyDataset, a generator, or the loader of another library
optimizers   an optimizer that steps in eager code
callbacks    which callback takes how long
checkpoints  saving the model or its weights
facts        versions, backend, model, precision, how it is compiled
"""

from __future__ import annotations

import sys
from typing import Any

from ..core import frames
from ..core.runtime import hook, is_helper_process
from . import callbacks, checkpoints, data, facts, optimizers, trainers

BACKENDS = ("tensorflow", "torch", "jax")


def attach(keras: Any, when_imported: Any) -> None:
    if not str(getattr(keras, "__version__", "2")).startswith("3"):
        return  # Keras 2 runs on TensorFlow alone: its tf.functions are seen
    frames.is_library(keras)
    if not is_helper_process():
        hook.open()
    backend = keras.config.backend()
    facts.at_import(keras, backend)
    trainer = sys.modules.get(f"keras.src.backend.{backend}.trainer")
    if trainer is None or backend not in BACKENDS:
        return
    trainers.attach(trainer, backend)
    data.attach(trainer, backend)
    for name, patch in (
        ("keras.src.optimizers.base_optimizer", optimizers.attach),
        ("keras.src.callbacks.callback_list", callbacks.attach),
        ("keras.src.saving.saving_api", checkpoints.attach),
    ):
        when_imported(name, patch)
