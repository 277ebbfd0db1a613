"""TensorFlow: loops of the script's own, in eager code or around a tf.function; what Keras runs on it, too.

datasets     iterators of tf.data that Python code goes through: their waits, and what their pipelines consist of
inside       iterators that compiled code goes through: the same, measured by operations beside theirs
functions    calls of tf.function: which of them are steps; GradientTape
facts        versions, device, options of the training loader's pipeline
checkpoints  tf.train.Checkpoint and SavedModel
"""

from __future__ import annotations

from typing import Any

from ..core import frames
from ..core.runtime import hook, is_helper_process
from . import checkpoints, datasets, facts, functions


def attach(tensorflow: Any, when_imported: Any) -> None:
    if not hasattr(tensorflow, "function"):  # TensorFlow 1
        return
    frames.is_library(tensorflow)
    if not is_helper_process():
        hook.open()
    facts.at_import(tensorflow)
    for name, patch in (
        ("tensorflow.python.data.ops.iterator_ops", datasets.attach),
        ("tensorflow.python.eager.polymorphic_function.polymorphic_function", functions.attach),
        ("tensorflow.python.eager.backprop", functions.attach_tape),
        ("tensorflow.python.checkpoint.checkpoint", checkpoints.attach),
        ("tensorflow.python.saved_model.save", checkpoints.attach_saved_model),
    ):
        when_imported(name, patch)
