"""Puts a program together from a model, a dataset, a loader, a loop and what the loop does besides."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from ..case import Case, Change
from ..settings import STYLES, Settings
from . import inserts, loops
from .models import IMPORTS as MODEL_IMPORTS
from .models import Model
from .pieces import Piece, assembled

SECONDS = 12.0  # of a recorded half, unless the runner says otherwise


@dataclass
class Plan:
    """A program before it is text."""

    cause: str
    about: str
    model: Model
    data: Piece
    batch_size: int
    num_workers: int = 0
    length: int = 20000
    collate: Piece | None = None  # use: the function's name
    loader: str = ""  # an expression instead of a DataLoader; the dataset's pieces are there all the same
    loader_options: str = ""
    shuffle: bool | None = None
    insert: inserts.Insert | None = None
    settings: dict[str, object] = field(default_factory=dict)
    changes: dict[str, Change] = field(default_factory=dict)
    cure: Change = field(default_factory=dict)
    base: Change = field(default_factory=dict)
    head: str = ""  # lines right after the settings
    imports: tuple[str, ...] = ()
    loop: object = None
    style: str = ""
    warmup: int = 5
    needs: tuple[str, ...] = ()
    foreign_load: int = 0


def data_loader(rng: random.Random, plan: Plan) -> str:
    dataset = plan.data.use
    shuffle = plan.shuffle if plan.shuffle is not None else rng.random() < 0.6
    parts = [dataset, "batch_size=$batch_size"]
    if shuffle:
        parts.append("shuffle=True")
    if rng.random() < 0.4:
        parts.append("drop_last=True")
    parts.append("num_workers=$num_workers")
    if plan.collate:
        parts.append(f"collate_fn={plan.collate.use}")
    if plan.loader_options:
        parts.append(plan.loader_options)
    return f"DataLoader({', '.join(parts)})"


def compose(rng: random.Random, name: str, plan: Plan) -> Case:
    insert = plan.insert or inserts.none(rng)
    loader = plan.loader or data_loader(rng, plan)
    settings = {"batch_size": plan.batch_size, "seconds": SECONDS, "times": "step_times.json", "warmup": plan.warmup}
    if "$num_workers" in loader:
        settings["num_workers"] = plan.num_workers
    settings.update({**insert.settings, **plan.settings})
    if "$data" in plan.data.text + plan.data.use:
        settings["data"] = "photos"
    if "$length" in plan.data.use + loader:
        settings["length"] = plan.length
    loop = plan.loop or rng.choice(loops.LOOPS)
    body = loops.Body(plan.model, loader, insert.before, insert.every_step)
    chosen = Settings(plan.style or rng.choice(STYLES), settings)
    imports = {*MODEL_IMPORTS, *loops.IMPORTS, *plan.model.piece.imports, *plan.data.imports, *insert.imports}
    imports |= {*plan.imports, *(plan.collate.imports if plan.collate else ())}
    if "DataLoader(" in loader:
        imports.add("from torch.utils.data import DataLoader")
    parts = [plan.head, plan.data.text, plan.collate.text if plan.collate else "", plan.model.piece.text]
    parts += [insert.definitions, loop(rng, body)]
    script = assembled(merged(imports), chosen, parts)
    return Case(
        name=name,
        cause=plan.cause,
        about=plan.about,
        script=script,
        settings=chosen,
        changes=plan.changes,
        cure=plan.cure,
        base=plan.base,
        needs=plan.needs,
        foreign_load=plan.foreign_load,
    )


def merged(imports: set[str]) -> tuple[str, ...]:
    """One line for several names from the same module."""
    names: dict[str, set[str]] = {}
    lines = set()
    for line in imports:
        if line.startswith("from "):
            module, listed = line[5:].split(" import ")
            names.setdefault(module, set()).update(name.strip() for name in listed.split(","))
        else:
            lines.add(line)
    return tuple(lines | {f"from {module} import {', '.join(sorted(listed))}" for module, listed in names.items()})
