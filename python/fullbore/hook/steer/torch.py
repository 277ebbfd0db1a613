"""PyTorch: which module's import applies which settings."""

from __future__ import annotations

import os
from typing import Any, Callable

from ..core.settings import attempted, settings
from . import accumulate, autopilot, loaders, losses, models, optimizers, outputs, precision, threads, trackers, writers

Patch = Callable[[Any], None]

OF_LOADERS = ("num_workers", "prefetch_factor", "persistent_workers", "pin_memory", "batch_size")
OF_MODELS = ("tf32", "cudnn_benchmark", "channels_last", "compile")
# In the order in which they patch: what the module is, whose settings need the patch, the patch.
PATCHES: tuple[tuple[str, tuple[str, ...], Patch], ...] = (
    ("torch", ("intraop_threads", "cpu_affinity"), threads.attach),
    ("torch.utils.data.dataloader", OF_LOADERS, loaders.attach),
    ("torch.nn", ("precision",), precision.attach),
    ("torch.amp.grad_scaler", ("precision", "accumulate"), precision.attach_scaler),
    ("torch.nn", OF_MODELS, models.attach),
    ("torch.nn.parallel.distributed", ("bucket_cap_mb", "static_graph", "channels_last"), models.attach_data_parallel),
    ("torch.optim.optimizer", ("optimizer",), optimizers.attach),
    ("torch.optim.optimizer", ("accumulate",), accumulate.attach),
    ("torch.optim.lr_scheduler", ("accumulate",), accumulate.attach_schedules),
    ("torch.nn", ("accumulate",), accumulate.attach_modules),
    ("torch.autograd", ("accumulate",), accumulate.attach_backward),
)


def attach(torch: Any, when_imported: Callable[[str, Patch], None]) -> None:
    if os.environ.get(trackers.VARIABLE):
        trackers.attach(when_imported)
    if outputs.trial is not None:
        writers.attach(outputs.trial, when_imported)
    if settings.asked:
        when_imported("torch.autograd", losses.attach)
    if os.environ.get(autopilot.VARIABLE):
        when_imported("torch.utils.data.dataloader", autopilot.attach)
    for module, names, patch in PATCHES:
        if any(settings.get(name) is not None for name in names):
            when_imported(module, attempted(*names)(patch))
