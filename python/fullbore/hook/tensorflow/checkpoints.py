"""What writes checkpoints of a TensorFlow training."""

from __future__ import annotations

import sys
from typing import Any

from ..core.checkpoints import timed_checkpoint


def attach(module: Any) -> None:
    """Patches tensorflow.python.checkpoint.checkpoint, on which CheckpointManager stands."""
    for name in ("save", "write"):
        setattr(module.Checkpoint, name, timed_checkpoint(getattr(module.Checkpoint, name)))


def attach_saved_model(module: Any) -> None:
    """tf.saved_model.save is another name of it."""
    original = module.save
    module.save = timed_checkpoint(original)
    public = getattr(sys.modules["tensorflow"], "saved_model", None)
    if getattr(public, "save", None) is original:
        public.save = module.save
