"""Lightning: `Trainer(callbacks=[FullboreCallback()])`, and `fullbore run -- python train.py`."""

from __future__ import annotations

from typing import Any

try:
    from lightning.pytorch.callbacks import Callback
except ImportError:  # the package's older name
    from pytorch_lightning.callbacks import Callback

from ..runs.reading import Run
from .live import VERDICT, LiveRun, numbers


class FullboreCallback(Callback):
    """Logs where a step's time goes (`fullbore/data_wait`, ... as ratios), `fullbore/samples_per_s` and the verdict to
    the trainer's loggers: every `every_s` seconds, and at the end. Only under `fullbore run`, and on the first rank."""

    def __init__(self, every_s: float = 60.0) -> None:
        self.live = LiveRun(every_s)

    def on_train_batch_end(self, trainer: Any, *_: Any, **__: Any) -> None:
        if trainer.is_global_zero:
            self.tell(trainer, self.live.news())

    def on_train_end(self, trainer: Any, *_: Any) -> None:
        if not trainer.is_global_zero:
            return
        run = self.live.last()
        self.tell(trainer, run)
        for logger in trainer.loggers if run is not None and run.verdict is not None else ():
            self.try_to(say, logger, run.verdict.title, trainer.global_step)

    def tell(self, trainer: Any, run: Run | None) -> None:
        if run is not None:
            for logger in trainer.loggers:
                self.try_to(logger.log_metrics, numbers(run), step=trainer.global_step)

    def try_to(self, call: Any, *args: Any, **kwargs: Any) -> None:
        try:
            call(*args, **kwargs)
        except Exception:  # a logger's: the training goes on without us
            self.live.give_up()


def say(logger: Any, verdict: str, step: int) -> None:
    """In words, where the logger takes words for a step; else beside the hyperparameters."""
    write = getattr(logger.experiment, "add_text", None)
    if write is None:
        logger.log_hyperparams({VERDICT: verdict})
    else:
        write(VERDICT, verdict, step)
