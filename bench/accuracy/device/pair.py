"""A program before and after a change, and what is true of a run of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import lcm

from .causes import CAUSES, Cause
from .program import Program
from .simulate import Run, simulate
from .truth import lateness, recomputed, shares, without_matrix_units


class Unsuitable(Exception):
    """This draw does not show what it should."""


@dataclass(frozen=True)
class Pair:
    name: str
    cause: str
    about: str
    before: Program
    after: Program | None  # with the cure; None where nothing helps
    detail: str  # of the change: "workers=4"
    second: str = ""  # the smaller problem beside it

    @property
    def rule(self) -> Cause:
        return CAUSES[self.cause]


def losses(run: Run) -> dict[str, float]:
    """By the words of Cause.share."""
    of = shares(run)
    return {**of, "launch": of["launch"] + of["gap"], "gap": 0.0, "compute": 0.0}


def true_share(cause: str, run: Run) -> float | None:
    part = CAUSES[cause].share
    if part == "cost":
        return None
    if part == "data" and run.program.ranks > 1:
        return None  # a rank whose batch is late is idle itself, or lets others wait: which of both is chance
    if part == "lateness":
        return lateness(run)
    if part == "no-matrix-units":
        return without_matrix_units(run)
    if part == "recomputed":
        return recomputed(run)
    return losses(run)[part] if part else None


def period_of(program: Program) -> int:
    """After so many steps, everything has happened once."""
    every = (program.item_of_loss, program.checkpoint_every, program.validation_every, program.gc_every)
    return lcm(program.accumulate, *(number for number in every if number))


def tried(program: Program, steps: int = 4) -> Run:
    period = period_of(program)
    steps, warmup = (-(-least // period) * period for least in (steps, 4))
    return simulate(replace(program, warmup=warmup, cold=False), 0, steps, noise=False, recorded=False)
