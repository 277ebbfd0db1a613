"""What is reported once about a training with Keras."""

from __future__ import annotations

import functools
import sys
from typing import Any

from ..core import steps
from ..core.runtime import Thread, hook
from ..core.waits import loaders
from ..tensorflow import facts as tensorflow_facts
from .data import Source


def at_import(keras: Any, backend: str) -> None:
    hook.facts_of_a_child |= {"keras", "keras_backend"}
    hook.fact("keras", str(keras.__version__))
    hook.fact("keras_backend", backend)
    steps.after_first_steps.append(functools.partial(after_step, keras, backend))


def after_step(keras: Any, backend: str, owner: Any, thread: Thread, end: int) -> None:
    if hook.facts.get("framework") != "keras":
        return
    hook.fact("keras_backend", backend)
    if hasattr(owner, "train_function"):
        about_model(owner)
    else:
        hook.fact("optimizer", type(owner).__name__)
        tensorflow_facts.about_precision(keras)
    hook.fact("device", device_name(backend))
    source = None if thread.fed_by is None else thread.fed_by.source()
    if isinstance(source, Source) and thread.fed_by.id in loaders:
        hook.fact("keras_data", {"library": source.said["library"], **source.said["args"]})


def about_model(model: Any) -> None:
    hook.fact("model", type(model).__name__)
    hook.fact("parameters", int(model.count_params()))
    hook.fact("optimizer", type(model.optimizer).__name__)
    hook.fact("jit_compile", bool(model.jit_compile))
    hook.fact("steps_per_execution", int(model.steps_per_execution))
    hook.fact("run_eagerly", bool(model.run_eagerly))
    policy = model.dtype_policy
    hook.fact("dtype_policy", str(policy.name))
    hook.fact("precision", str(policy.compute_dtype))
    hook.fact("parameter_dtype", str(policy.variable_dtype))


def device_name(backend: str) -> str | None:
    if backend == "tensorflow":
        return tensorflow_facts.device_name(sys.modules["tensorflow"])
    if backend == "torch":
        torch = sys.modules["torch"]
        return f"cuda:0 ({torch.cuda.get_device_name(0)})" if torch.cuda.is_available() else "cpu"
    device = sys.modules["jax"].devices()[0]
    return "cpu" if device.platform == "cpu" else f"{device.platform}:{device.id} ({device.device_kind})"
