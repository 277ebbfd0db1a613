"""Keras: `model.fit(batch_size=)`, on every backend."""

from __future__ import annotations

import functools
import inspect
import sys
from typing import Any, Callable

from ..core.interrupts import is_the_scripts
from ..core.runtime import guarded
from ..core.settings import settings


def attach(keras: Any, when_imported: Callable[..., None]) -> None:
    if settings.get("batch_size") is None or not str(getattr(keras, "__version__", "2")).startswith("3"):
        return
    trainer = sys.modules.get(f"keras.src.backend.{keras.config.backend()}.trainer")
    for name, cls in vars(trainer).items() if trainer is not None else ():
        if name.endswith("Trainer") and isinstance(cls, type) and cls.__module__ == trainer.__name__:
            cls.fit = with_batch_size(cls.fit)  # type: ignore[attr-defined]


def with_batch_size(original: Any) -> Any:
    signature = inspect.signature(original)

    @functools.wraps(original)
    def fit(*args: Any, **kwargs: Any) -> Any:
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as error:
            if is_the_scripts(error):
                raise
            return original(*args, **kwargs)  # raises what it would have raised
        set_batch_size(bound.arguments)
        return original(*bound.args, **bound.kwargs)

    return fit


@guarded
def set_batch_size(arguments: dict[str, Any]) -> None:
    given = arguments.get("x")
    if type(given).__module__.startswith("torch.utils.data"):
        return  # a DataLoader is made with its own
    if hasattr(given, "shape") or isinstance(given, (list, tuple, dict)):
        arguments["batch_size"] = settings.get("batch_size")
        settings.applied("batch_size")
    else:
        settings.refused("batch_size", f"a {type(given).__name__} makes the batches")
