"""What is reported once about a training on TensorFlow: versions, device, precision, the training loader's pipeline."""

from __future__ import annotations

import sys
from typing import Any

from ..core import steps
from ..core.runtime import Thread, hook
from ..core.waits import loaders
from . import datasets


def at_import(tensorflow: Any) -> None:
    hook.facts_of_a_child |= {"tensorflow"}
    hook.fact("tensorflow", str(tensorflow.__version__))
    steps.after_first_steps.append(after_step)


def after_step(owner: Any, thread: Thread, end: int) -> None:
    about_pipeline(thread)
    if hook.facts.get("framework") != "tensorflow":
        return
    tensorflow = sys.modules["tensorflow"]
    hook.fact("device", device_name(tensorflow))
    if tensorflow.distribute.has_strategy():
        hook.fact("distributed", type(tensorflow.distribute.get_strategy()).__name__)
    if hasattr(owner, "_jit_compile"):
        hook.fact("jit_compile", bool(owner._jit_compile))
    keras = sys.modules.get("keras")
    if keras is not None:
        about_precision(keras)


def about_precision(keras: Any) -> None:
    policy = keras.config.dtype_policy()
    hook.fact("dtype_policy", str(policy.name))
    hook.fact("precision", str(policy.compute_dtype))
    hook.fact("parameter_dtype", str(policy.variable_dtype))


def about_pipeline(thread: Thread) -> None:
    """The stages and options of the pipeline that feeds the steps."""
    source = None if thread.fed_by is None else thread.fed_by.source()
    if isinstance(source, datasets.Pipeline) and thread.fed_by.id in loaders and "stages" in source.said:
        hook.fact("tf_data", {"stages": source.said["stages"], **source.said["args"]})


def device_name(tensorflow: Any) -> str:
    gpus = tensorflow.config.list_physical_devices("GPU")
    if not gpus:
        return "cpu"
    name = tensorflow.config.experimental.get_device_details(gpus[0]).get("device_name")
    return f"gpu:0 ({name})" if name else "gpu:0"
