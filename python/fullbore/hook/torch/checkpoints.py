"""What writes checkpoints of a torch training: torch.save and safetensors."""

from __future__ import annotations

import sys
from typing import Any

from ..core.checkpoints import timed_checkpoint


def attach(serialization: Any) -> None:
    torch = sys.modules["torch"]
    original = serialization.save
    serialization.save = timed_checkpoint(original)
    if torch.save is original:
        torch.save = serialization.save


def attach_safetensors(module: Any) -> None:
    for name in ("save_file", "save_model"):
        if hasattr(module, name):
            setattr(module, name, timed_checkpoint(getattr(module, name)))
