"""The loggers whose metrics are taken along: TensorBoard's writers, MLflow's client, W&B's runs, the Trainer of
Transformers, and Lightning's CSV files. Other loggers of these trainers call one of them.

Where one calls another, the outer one's names are taken. TensorBoard's values are those of the message that its writer
has made of them: by then they are on the host anyway.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable, Iterator
from typing import Any, Callable

from ..core.interrupts import is_the_scripts
from ..core.runtime import get_ident, guarded, hook
from . import logged

Given = tuple[Iterable[tuple[Any, Any]], Any]  # names and values, and the step
MOST_DEEP = 3  # dictionaries in dictionaries

INSIDE: dict[int, list[logged.Metric]] = {}  # by thread: what the logger takes whose call is under way
hook.forget_in_child.append(INSIDE.clear)
WRITERS: dict[str, str] = {}  # of TensorBoard: metric -> the directory of the writer that had it first
hook.forget_in_child.append(WRITERS.clear)


def seen(original: Any, logger: str, given: Callable[..., Given | None]) -> Any:
    """A logger's method, of whose arguments `given` says what is logged."""

    @functools.wraps(original)
    def logs(*args: Any, **kwargs: Any) -> Any:
        if not hook.on or hook.channel is None:
            return original(*args, **kwargs)
        thread = get_ident()
        outer = INSIDE.get(thread)
        if outer is not None:
            for metric in outer:
                logged.logged.was_given_to(metric, logger)
            return original(*args, **kwargs)
        INSIDE[thread] = take(logger, given, args, kwargs) or []
        try:
            return original(*args, **kwargs)
        finally:
            INSIDE.pop(thread, None)

    return logs


@guarded
def take(logger: str, given: Callable[..., Given | None], args: Any, kwargs: Any) -> list[logged.Metric]:
    try:
        found = given(*args, **kwargs)
        values, step = found if found is not None else ((), None)
        values = list(values)
        step = logged.step_of(step, dict(values))
    except Exception as error:  # it was not called as it is meant to be: its own error says so
        if is_the_scripts(error):
            raise
        return []
    return logged.take(logger, values, step)


def flat(metrics: Any, deep: int = 1) -> Iterator[tuple[Any, Any]]:
    """Names and values of a dictionary; those of dictionaries in it as "outer.inner"."""
    for name, value in dict.items(metrics):
        if isinstance(value, dict) and deep < MOST_DEEP:
            yield from ((f"{name}.{inner}", each) for inner, each in flat(value, deep + 1))
        else:
            yield name, value


def of_tensorboard(writer: Any, summary: Any, global_step: Any = None, walltime: Any = None) -> Given | None:
    scalars = [(value.tag, scalar_in(value)) for value in summary.value]
    place = str(writer.get_logdir())
    return [(name_in(place, tag), value) for tag, value in scalars if value is not None], global_step


def scalar_in(value: Any) -> float | None:
    """Of a message `Summary.Value`, in its older form or the newer one."""
    kind = value.WhichOneof("value")
    if kind == "simple_value":
        return value.simple_value
    is_scalar = kind == "tensor" and value.metadata.plugin_data.plugin_name == "scalars"
    return value.tensor.float_val[0] if is_scalar and len(value.tensor.float_val) == 1 else None


def name_in(place: str, tag: str) -> str:
    """Two writers may have one tag, as "train" and "val" do: the second's is named after its directory."""
    if len(WRITERS) < logged.MOST_METRICS:
        WRITERS.setdefault(tag, place)
    return tag if WRITERS.get(tag, place) == place else f"{os.path.basename(place)}/{tag}"


def of_mlflow_metric(
    client: Any, run_id: Any, key: Any, value: Any, timestamp: Any = None, step: Any = None, *_: Any, **__: Any
) -> Given:
    return [(key, value)], step


def of_mlflow_batch(client: Any, run_id: Any, metrics: Any = (), *_: Any, **__: Any) -> Given | None:
    if not isinstance(metrics, (list, tuple)) or not metrics:  # what can be gone through only once is the script's
        return None
    return [(metric.key, metric.value) for metric in metrics], metrics[-1].step


def of_wandb(run: Any, data: Any, step: Any = None, *_: Any, **__: Any) -> Given:
    return flat(data), step


def of_trainer(trainer: Any, logs: Any, *_: Any, **__: Any) -> Given | None:
    """Each rank calls it, and the first one logs."""
    return (flat(logs), trainer.state.global_step) if trainer.state.is_world_process_zero else None


def of_csv_files(files: Any, metrics_dict: Any, step: Any = None) -> Given:
    return flat(metrics_dict), step


# By module: the logger's name, its class and its methods.
LOGGERS: dict[str, tuple[str, str, dict[str, Callable[..., Given | None]]]] = {
    "torch.utils.tensorboard.writer": ("tensorboard", "FileWriter", {"add_summary": of_tensorboard}),
    "tensorboardX.writer": ("tensorboard", "FileWriter", {"add_summary": of_tensorboard}),
    "mlflow.tracking.client": (
        "mlflow",
        "MlflowClient",
        {"log_metric": of_mlflow_metric, "log_batch": of_mlflow_batch},
    ),
    "wandb.sdk.wandb_run": ("wandb", "Run", {"log": of_wandb}),
    "transformers.trainer": ("transformers", "Trainer", {"log": of_trainer}),
    "lightning.fabric.loggers.csv_logs": ("csv", "_ExperimentWriter", {"log_metrics": of_csv_files}),
    "lightning_fabric.loggers.csv_logs": ("csv", "_ExperimentWriter", {"log_metrics": of_csv_files}),
}


UNFINISHED: list[Any] = []  # modules that were being imported, and had imported the framework


def attach(module: Any) -> None:
    logged.attach()
    if not patch(module):
        UNFINISHED.append(module)
        if attach_rest not in hook.beside:
            hook.beside.append(attach_rest)


def attach_rest() -> None:
    """By the time of the first steps they are whole."""
    if UNFINISHED:
        UNFINISHED[:] = [module for module in UNFINISHED if not patch(module)]


def patch(module: Any) -> bool:
    logger, class_name, methods = LOGGERS[module.__name__]
    owner = getattr(module, class_name, None)
    for name, given in methods.items():
        if hasattr(owner, name):
            setattr(owner, name, seen(getattr(owner, name), logger, given))
    return owner is not None
