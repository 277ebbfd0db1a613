"""What `fit` iterates. Each backend takes it in another form: TensorFlow as a tf.data dataset, PyTorch as a DataLoader,
JAX as a Python iterator. Where Keras makes that itself, from arrays, a PyDataset or a generator, the loader is named
after what the script gave; where the script gave a loader, that is the one.
"""

from __future__ import annotations

import functools
import sys
from typing import Any

from ..core import calls
from ..core.frames import caller_place
from ..core.runtime import clock, hook
from ..core.waits import Epoch, Loader, introduced, loaders, timed_next
from ..tensorflow import datasets

ARRAYS, PY_DATASET, GENERATOR, TF_DATA, GRAIN = "keras.arrays", "keras.PyDataset", "keras.generator", "tf.data", "grain"
LIBRARIES = {
    "ArrayDataAdapter": ARRAYS,
    "PyDatasetAdapter": PY_DATASET,
    "GeneratorDataAdapter": GENERATOR,
    "GrainDatasetAdapter": GRAIN,
}


class Source(datasets.Pipeline):
    """What the script gave to `fit`."""


sources: dict[Any, Source] = {}
hook.forget_in_child.append(sources.clear)


def source_of(epoch_iterator: Any) -> Source | None:
    """None for a loader of PyTorch, which is known by itself."""
    adapter = epoch_iterator.data_adapter
    kind = type(adapter).__name__
    if kind == "TFDatasetAdapter":
        pipeline = datasets.pipeline_of(adapter._dataset)
        return pipeline
    if kind == "TorchDataLoaderAdapter":
        return None
    where = caller_place()
    key = (where, kind, adapter.num_batches, adapter.batch_size, type(given_to(adapter)).__name__)
    source = sources.get(key)
    if source is None:
        source = sources[key] = Source(describe(adapter, kind), where)
    return source


def given_to(adapter: Any) -> Any:
    for name in ("py_dataset", "_py_dataset", "generator", "_dataset"):
        given = getattr(adapter, name, None)
        if given is not None:
            return given
    return adapter


def describe(adapter: Any, kind: str) -> dict[str, Any]:
    library = LIBRARIES.get(kind, "keras." + kind)
    args: dict[str, Any] = {"batch_size": adapter.batch_size}
    dataset, length = type(given_to(adapter)).__name__, None
    if kind == "ArrayDataAdapter":
        dataset, length = "arrays", adapter._num_samples
    elif kind == "PyDatasetAdapter":
        given = adapter.py_dataset
        beside = given.workers > 1 or given.use_multiprocessing
        args["num_workers"] = given.workers if beside else 0
        args["use_multiprocessing"] = given.use_multiprocessing
        args["max_queue_size"] = given.max_queue_size
    return {"library": library, "args": args, "dataset": dataset, "dataset_len": length}


class EpochSteps:
    """JAX: the iterator that `fit` hands to the training function, for one epoch."""

    def __init__(self, batches: Any, loader: Loader | None) -> None:
        begin = clock()
        self.batches = iter(batches)
        self.loader = loader
        if loader is not None:
            self.__dict__["_fullbore_epoch"] = Epoch(loader, begin, clock())

    def __iter__(self) -> Any:
        return self

    def take(self) -> Any:
        return next(self.batches)

    def __next__(self) -> Any:
        return self.timed() if self.loader is not None else self.take_of_other()

    def take_of_other(self) -> Any:
        """From a loader that times its waits itself."""
        begin = clock()
        batch = next(self.batches)
        tell_call(begin)
        return batch

    def timed(self) -> Any:
        return timed_take(self)


def tell_call(begin: int) -> None:
    if not hook.on:
        return
    try:
        call = calls.current(hook.here())
        if call is not None:
            call.took_batch(begin, clock())
    except Exception as error:
        if not hook.fail("next", error):
            raise


def loader_of_epoch(epoch: EpochSteps) -> Any:
    return epoch.loader


def after_next(epoch: EpochSteps, wait: Any, got: bool) -> None:
    if got:
        tell_call(wait.begin)


timed_take = timed_next(EpochSteps.take, loader_of_epoch, after_next)


def attach(module: Any, backend: str) -> None:
    """Patches the epoch iterator of keras.src.backend.*.trainer."""
    (EpochIterator,) = [
        value
        for name, value in vars(module).items()
        if name.endswith("EpochIterator") and value.__module__ == module.__name__
    ]
    original = EpochIterator._get_iterator
    hand_over = {"tensorflow": of_tensorflow, "torch": of_torch, "jax": of_jax}[backend]

    @functools.wraps(original)
    def _get_iterator(self: Any) -> Any:
        iterable = original(self)
        if not hook.on:
            return iterable
        try:
            if hook.here().in_next:  # an evaluation, or a look at the first batch
                return iterable
            return hand_over(iterable, source_of(self))
        except Exception as error:
            if not hook.fail("the data of fit", error):
                raise
            return iterable

    EpochIterator._get_iterator = _get_iterator


def of_tensorflow(dataset: Any, source: Source | None) -> Any:
    if isinstance(source, Source):
        dataset.__dict__["_fullbore_pipeline"] = source
    return dataset


def of_torch(dataloader: Any, source: Source | None) -> Any:
    """Keras makes a DataLoader for each epoch: all of them are one loader."""
    if source is not None and sys.modules.get("torch") is not None:
        loader = introduced(source, Loader, datasets.said_of)
        loaders[loader.id] = loader
        dataloader.__dict__["_fullbore_id"] = source.__dict__["_fullbore_id"]
    return dataloader


def of_jax(batches: Any, source: Source | None) -> Any:
    return EpochSteps(batches, None if source is None else introduced(source, Loader, datasets.said_of))
