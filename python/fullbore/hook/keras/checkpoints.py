"""What writes checkpoints of a Keras training: model.save and save_weights, which ModelCheckpoint calls, too."""

from __future__ import annotations

import sys
from typing import Any

from ..core.checkpoints import timed_checkpoint

PUBLIC = ("keras.saving", "keras.models")  # where save_model has another name


def attach(module: Any) -> None:
    """Patches keras.src.saving.saving_api, where the methods of Model look the functions up."""
    for name in ("save_model", "save_weights"):
        original = getattr(module, name)
        setattr(module, name, timed_checkpoint(original))
        for public in PUBLIC:
            other = sys.modules.get(public)
            if getattr(other, name, None) is original:
                setattr(other, name, getattr(module, name))
