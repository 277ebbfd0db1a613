"""Programs that do something besides training, leak memory, compute all the time, or share their cores."""

from __future__ import annotations

import random
from collections.abc import Callable

from ..case import Case
from . import data, inserts, models
from .compose import Plan, compose
from .loading import batch_size

KINDS = ("image", "flat", "tokens", "series", "categories")


def busy_besides(cause: str, insert: Callable[[random.Random], inserts.Insert]) -> Callable[[random.Random, str], Case]:
    def build(rng: random.Random, name: str) -> Case:
        kind = rng.choice(KINDS)
        besides = insert(rng)
        plan = Plan(
            cause=cause,
            about=f"the loop {besides.about}",
            model=models.any_model(rng, kind, rng.choice([0.5, 0.7])),
            data=data.in_memory(rng, kind),
            batch_size=batch_size(rng, kind),
            insert=besides,
            changes={cause: besides.removed},
            cure=besides.removed,
        )
        return compose(rng, name, plan)

    return build


logging = busy_besides("logging", inserts.log_gradients)
rewriting = busy_besides("logging", inserts.synced_log)
checkpointing = busy_besides("checkpoint", inserts.checkpoints)
validating = busy_besides("validation", inserts.validation)
collecting = busy_besides("garbage-collection", inserts.garbage)
measuring = busy_besides("metrics", inserts.metrics)
probing = busy_besides("subprocess", inserts.subprocesses)
sleeping = busy_besides("sleep", inserts.sleeping)


def leaking(rng: random.Random, name: str) -> Case:
    insert = rng.choice((inserts.kept_graphs, inserts.kept_batches))(rng)
    plan = Plan(
        cause="memory-growth",
        about=f"the loop {insert.about}: memory grows until the run ends",
        model=models.any_model(rng, "flat", 1.0),
        data=data.in_memory(rng, "flat"),
        batch_size=64,
        insert=insert,
        changes={"memory-growth": insert.removed},
        cure=insert.removed,
    )
    return compose(rng, name, plan)


def computing(rng: random.Random, name: str) -> Case:
    kind = rng.choice(("image", "tokens", "series", "categories"))
    plan = Plan(
        cause="healthy",
        about="computes nearly all the time, fed from memory",
        model=models.any_model(rng, kind, rng.choice([1.5, 2.0])),
        data=data.in_memory(rng, kind),
        batch_size=2 * batch_size(rng, kind),
    )
    return compose(rng, name, plan)


def well_fed(rng: random.Random, name: str) -> Case:
    """Workers that keep up: nothing is left to gain from the loader."""
    plan = Plan(
        cause="healthy",
        about="one worker that keeps up easily with a large model",
        model=models.convnet(rng, 3.0),
        data=data.arrays(rng, "image", 1),
        batch_size=32,
        num_workers=1,
        head="torch.set_num_threads(1)",
    )
    return compose(rng, name, plan)


def among_others(rng: random.Random, name: str) -> Case:
    kind = rng.choice(("image", "tokens"))
    plan = Plan(
        cause="foreign-load",
        about="trains while other programs take the cores",
        model=models.any_model(rng, kind, 1.0),
        data=data.in_memory(rng, kind),
        batch_size=batch_size(rng, kind),
        foreign_load=2,
    )
    return compose(rng, name, plan)
