"""Checkpoints of Orbax and of Flax. What is written in the background is not waited for, and costs what it blocks."""

from __future__ import annotations

from typing import Any

from ..core.checkpoints import timed_checkpoint


def attach_manager(module: Any) -> None:
    module.CheckpointManager.save = timed_checkpoint(module.CheckpointManager.save)


def attach_checkpointer(module: Any) -> None:
    module.Checkpointer.save = timed_checkpoint(module.Checkpointer.save)


def attach_flax(module: Any) -> None:
    for name in ("save_checkpoint", "save_checkpoint_multiprocess"):
        if hasattr(module, name):
            setattr(module, name, timed_checkpoint(getattr(module, name)))
