"""Transformers: `trainer.add_callback(FullboreCallback(trainer))`, and `fullbore run -- python train.py`."""

from __future__ import annotations

from typing import Any

from transformers import TrainerCallback

from ..runs.reading import Run
from .live import VERDICT, LiveRun, numbers


class FullboreCallback(TrainerCallback):
    """Logs where a step's time goes (`fullbore/data_wait`, ... as ratios), `fullbore/samples_per_s` and the verdict by
    the trainer's own `log`, which all its trackers hear: every `every_s` seconds, and after the last step. Only under
    `fullbore run`, and on the first rank."""

    def __init__(self, trainer: Any, every_s: float = 60.0) -> None:
        self.trainer = trainer
        self.live = LiveRun(every_s)

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if not state.is_world_process_zero:
            return
        run = self.live.last() if control.should_training_stop else self.live.news()
        # `log` takes it that the loss is logged, too: for that all ranks meet, and this one would stay away.
        loss_is_due = control.should_log
        try:
            self.log(run)
        except Exception:  # a tracker's
            self.live.give_up()
        finally:
            control.should_log = loss_is_due

    def log(self, run: Run | None) -> None:
        if run is None:
            return
        self.trainer.log(numbers(run))
        if run.verdict is not None:
            self.trainer.state.log_history[-1][VERDICT] = run.verdict.title  # trackers of numbers take no words
