"""Iterators of tf.data: the wait in `next`, and what the pipeline behind it consists of.

A script often makes its dataset anew for each epoch (`ds.shuffle(...)` in the loop), so a loader is told by the line
that iterates it, its stages and its elements, not by the object.
"""

from __future__ import annotations

import functools
import sys
from typing import Any

from ..core import calls
from ..core.frames import caller_place
from ..core.interrupts import is_the_scripts
from ..core.runtime import clock, hook
from ..core.waits import Loader, Wait, introduced, timed_next
from . import inside

LIBRARY = "tf.data"
MAX_STAGES = 64
AUTOTUNE = -1
# What the classes of tensorflow.python.data.ops are called in the words of tf.data.
SHORT = {
    "Prefetch": "prefetch",
    "ParallelMap": "map",
    "Map": "map",
    "ParallelBatch": "batch",
    "Batch": "batch",
    "PaddedBatch": "padded_batch",
    "Cache": "cache",
    "Shuffle": "shuffle",
    "ParallelInterleave": "interleave",
    "Interleave": "interleave",
    "FlatMap": "flat_map",
    "Repeat": "repeat",
    "Take": "take",
    "Skip": "skip",
    "Filter": "filter",
    "Zip": "zip",
    "Shard": "shard",
    "TensorSlice": "from_tensor_slices",
    "Tensor": "from_tensors",
    "Generator": "from_generator",
}


class Pipeline:
    """Stands for all datasets that are one loader of the script. Others (Keras) make their own."""

    def __init__(self, said: dict[str, Any], where: tuple[str, int] | None) -> None:
        self.said = said
        if where is not None:
            self.__dict__["_fullbore_where"] = where


pipelines: dict[Any, Pipeline] = {}
hook.forget_in_child.append(pipelines.clear)


def said_of(pipeline: Pipeline) -> dict[str, Any]:
    return pipeline.said


def introduce(pipeline: Pipeline) -> Loader:
    return introduced(pipeline, Loader, said_of)


def loader_of(iterator: Any) -> Loader:
    """The loader of a tf.data iterator."""
    return introduce(pipeline_of(getattr(iterator, "_dataset", None)))


def pipeline_of(dataset: Any) -> Pipeline:
    fields = {} if dataset is None else dataset.__dict__
    pipeline = fields.get("_fullbore_pipeline")
    if pipeline is None:
        where = caller_place()
        said = describe(dataset)
        key = (where, said["stages"], str(getattr(dataset, "element_spec", "")))
        pipeline = pipelines.get(key)
        if pipeline is None:
            pipeline = pipelines[key] = Pipeline(said, where)
        fields["_fullbore_pipeline"] = pipeline
    return pipeline


def describe(dataset: Any) -> dict[str, Any]:
    """What the recorder is told. Options of stages that the pipeline does not have are absent."""
    stages = [stage for stage in stages_of(dataset) if stage[0] != "options"]
    names = [name for name, _ in stages]
    args: dict[str, Any] = {"batch_size": batch_size_of(stages)}
    for name, stage in stages:
        if name == "prefetch" and "prefetch" not in args:
            args["prefetch"] = number(stage, "_buffer_size")
        elif name in ("map", "interleave"):
            calls_at_once = number(stage, "_num_parallel_calls") if "Parallel" in type(stage).__name__ else None
            args.setdefault("num_parallel_calls", {}).setdefault(name, []).append(calls_at_once)
    # A prefetch elsewhere than at the end does not run beside the training.
    args["prefetch_at_end"] = names[:1] == ["prefetch"]
    args["cache"] = "cache" in names
    args["shuffle"] = "shuffle" in names
    return {
        "library": LIBRARY,
        "args": args,
        "dataset": names[-1] if names else LIBRARY,
        "dataset_len": samples_of(dataset, args["batch_size"]),
        "stages": " -> ".join(reversed(names)),
    }


def stages_of(dataset: Any) -> Any:
    """(name, dataset) of each stage, from the end of the pipeline to its source, along its first inputs."""
    for _ in range(MAX_STAGES):
        if dataset is None:
            return
        name = type(dataset).__name__.lstrip("_")
        for ending in ("Dataset", "DatasetV2", "DatasetV1", "V2"):
            name = name[: -len(ending)] if name.endswith(ending) else name
        yield SHORT.get(name, name[:1].lower() + name[1:]), dataset
        inputs = dataset._inputs()
        dataset = inputs[0] if inputs else None


def number(stage: Any, field: str) -> int | str | None:
    """A stage's option, which it keeps as a tensor."""
    value = getattr(stage, field, None)
    if value is None:
        return None
    try:
        value = int(value)
    except (TypeError, ValueError) as error:  # not known before it runs
        if is_the_scripts(error):
            raise
        return None
    return "AUTOTUNE" if value == AUTOTUNE else value


def batch_size_of(stages: list[Any]) -> int | None:
    for name, stage in stages:
        size = number(stage, "_batch_size") if name in ("batch", "padded_batch") else None
        if isinstance(size, int):
            return size
    return None


def samples_of(dataset: Any, batch_size: int | None) -> int | None:
    """How many samples an epoch has at most; None if that is not known, or there is no end."""
    try:
        batches = int(dataset.cardinality())
    except Exception as error:  # a dataset of the user's own making
        if is_the_scripts(error):
            raise
        return None
    return batches * (batch_size or 1) if batches >= 0 else None


def after_next(iterator: Any, wait: Wait, got: bool) -> None:
    if got and wait.thread.open_steps:
        call = calls.current(wait.thread)
        if call is not None:
            call.took_batch(wait.begin, clock())


def attach(module: Any) -> None:
    """Patches tensorflow.python.data.ops.iterator_ops."""
    tensorflow = sys.modules["tensorflow"]
    for name in ("__next__", "get_next", "get_next_as_optional"):
        patch(tensorflow, module.OwnedIterator, name)
    inside.OwnedIterator = module.OwnedIterator


def patch(tensorflow: Any, OwnedIterator: Any, name: str) -> None:
    original = getattr(OwnedIterator, name)
    executing_eagerly = tensorflow.executing_eagerly
    timed = original if name == "get_next_as_optional" else timed_next(original, loader_of, after_next)
    in_graph = inside.measured(tensorflow, original, name)

    def take(self: Any) -> Any:
        return timed(self) if executing_eagerly() else in_graph(self)

    setattr(OwnedIterator, name, _like(take, original))


def _like(function: Any, original: Any) -> Any:
    """With the name and module of what it replaces: autograph leaves alone what is TensorFlow's own."""
    return functools.wraps(original)(function)
