"""Switches experiment trackers off in a trial ($FULLBORE_TRIAL): they would report it to a server."""

from __future__ import annotations

import functools
import os
import tempfile
from typing import Any, Callable

VARIABLE = "FULLBORE_TRIAL"

SWITCHED_OFF = {
    "WANDB_MODE": "disabled",
    "COMET_MODE": "disabled",
    "NEPTUNE_MODE": "debug",
    "CLEARML_OFFLINE_MODE": "1",
    "SWANLAB_MODE": "disabled",
}


def attach(when_imported: Callable[[str, Callable[[Any], None]], None]) -> None:
    os.environ.update(SWITCHED_OFF)
    os.environ["MLFLOW_TRACKING_URI"] = f"file://{tempfile.gettempdir()}/fullbore-mlruns"
    when_imported("wandb", switch_off_wandb)
    when_imported("mlflow", switch_off_mlflow)


def switch_off_wandb(wandb: Any) -> None:
    original = wandb.init

    @functools.wraps(original)
    def init(*args: Any, **kwargs: Any) -> Any:
        kwargs["mode"] = "disabled"
        return original(*args, **kwargs)

    wandb.init = init


def switch_off_mlflow(mlflow: Any) -> None:
    def set_tracking_uri(uri: Any) -> None:
        """It stays where the trial keeps its files."""

    mlflow.set_tracking_uri = set_tracking_uri
