"""PyTorch: which module's import applies which settings."""

from __future__ import annotations

import functools
from typing import Any, Callable

from ..core.settings import settings
from . import loaders, outputs, threads, writers

Patch = Callable[[Any], None]


def attach(torch: Any, when_imported: Callable[[str, Patch], None]) -> None:
    if outputs.trial is not None:
        writers.attach(outputs.trial, when_imported)
    for name, patch in (
        ("torch", threads.attach),
        ("torch.utils.data.dataloader", loaders.attach),
    ):
        when_imported(name, functools.partial(attempt, patch))


def attempt(patch: Patch, module: Any) -> None:
    """A setting of which we do not know how to apply it here is refused; the others are applied."""
    try:
        patch(module)
    except Exception as error:
        for name in getattr(patch, "settings", ()):
            if settings.get(name) is not None:
                settings.refused(name, f"{type(error).__name__}: {error}")
