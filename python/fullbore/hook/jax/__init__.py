"""JAX: plain, Flax, Optax and whatever else is built on jax.jit.

calls        every call of a compiled function: where its time begins and ends
functions    which compiled function is the training's step, and what the others are
batches      how many samples the step is given, where no loader is seen
arrays       the arrays in a tree, and whether they are met again
waits        where the host waits for the device: block_until_ready, device_get, float(loss)
compiling    what is compiled, how often and why again
checkpoints  Orbax and Flax
facts        versions, device, precision

A compiled function holds the whole step: forward, backward and optimizer. Loaders that JAX programs use are seen by
others' folders (torch's DataLoader, tf.data, fullbore.watch); a generator of the script's own by the line sampler.
"""

from __future__ import annotations

from typing import Any, Callable

from ..core import frames
from ..core.runtime import hook, is_helper_process
from . import calls, checkpoints, compiling, facts, waits


def attach(jax: Any, when_imported: Callable[[str, Callable[[Any], None]], None]) -> None:
    frames.is_library(jax)
    if not is_helper_process():
        hook.open()
    facts.at_import(jax)
    calls.attach(jax)
    waits.attach(jax)
    compiling.attach(jax)
    for name, patch in (
        ("orbax.checkpoint.checkpoint_manager", checkpoints.attach_manager),
        ("orbax.checkpoint._src.checkpointers.checkpointer", checkpoints.attach_checkpointer),
        ("flax.training.checkpoints", checkpoints.attach_flax),
    ):
        when_imported(name, patch)
