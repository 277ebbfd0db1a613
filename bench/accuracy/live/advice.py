"""From a finding to the change that a person would make to this program after reading it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from .case import Case, Change

# By what a finding says of its cause: which of a program's changes do what it advises.
CHANGES = {
    "storage": ("storage", "blocked"),
    "blocked": ("blocked", "storage"),
    "collate": ("collate", "blocked"),
    "slow-sample": ("slow-sample",),
    "epoch-start": ("persistent-workers",),
    "checkpoint": ("checkpoint",),
    "validation": ("validation",),
    "garbage-collection": ("garbage-collection",),
    # "log every N steps": only a program that logs can do that
    "loop-code": ("logging",),
    "logging": ("logging",),
    "files": ("logging", "checkpoint"),
    "metrics": ("metrics",),
    "subprocess": ("subprocess",),
    "sleep": ("sleep",),
    "straggler": ("straggler",),
    "comm-bound": ("accumulate",),
    "memory-growth": ("memory-growth",),
    "own-loader": ("more-producers",),
    "own-iterator": ("behind-loader",),
}
# Changes training results: a person does it when told to, and tries it for no other reason.
NOT_TRIED_UNASKED = {"accumulate"}
# Advice with a gain that is about a program that has yet to be written ("resize and re-encode offline").
UNTESTABLE = {"decode", "data-preparation", "tokenising"}
WORKERS = re.compile(r"num_workers=(\d+)")
WITH_THREADS = re.compile(r"(?:OMP_NUM_THREADS=|set_num_threads\()(\d+)")


@dataclass(frozen=True)
class Advice:
    """state: applied (`change` does it), unpromised (so it does, but no gain is promised, as on a noisy machine), none
    (nothing is advised), untestable, or misfit: a gain is promised for something that the program does not do."""

    state: str
    change: Change | None = None


def advised(finding: dict, case: Case) -> Advice:
    if "speedup" in finding:
        return to_do(finding, case)
    unpromised = to_do(finding, case).change if "change" in finding else None
    return Advice("unpromised", unpromised) if unpromised is not None else Advice("none")


def to_do(finding: dict, case: Case) -> Advice:
    recommended = " ".join([finding.get("change", ""), *finding.get("fix", [])[:1]])
    if "fast-data" in finding.get("cause", "") or "--fast-data" in recommended or "from_torch" in recommended:
        return found(case, "fast-data")
    threads = WITH_THREADS.search(recommended)
    if match := WORKERS.search(recommended):
        change = with_workers(case, int(match.group(1)))
        if change is None:
            return Advice("misfit")
        return Advice("applied", {**change, **({"env:OMP_NUM_THREADS": int(threads.group(1))} if threads else {})})
    cause = finding.get("cause") or finding["id"]
    if threads:
        also = found(case, *CHANGES.get(cause, ())).change or {}
        return Advice("applied", {**also, "env:OMP_NUM_THREADS": int(threads.group(1))})
    if "persistent_workers=True" in recommended:
        return found(case, "persistent-workers")
    if cause in UNTESTABLE:
        return Advice("untestable")
    return found(case, *CHANGES.get(cause, ()))


def with_workers(case: Case, workers: int) -> Change | None:
    """What gives the program so many loader workers; None if it has no use for them."""
    if case.takes("num_workers"):
        return {"num_workers": workers}
    behind = case.changes.get("behind-loader")
    return {name: workers for name in behind} if behind else None


def found(case: Case, *keys: str) -> Advice:
    return next((Advice("applied", case.changes[key]) for key in keys if key in case.changes), Advice("misfit"))


def usual_changes(case: Case, cores: int, most: int = 3) -> dict[str, Change]:
    """The laboratory's list: what people try when nothing is advised, and what was planted first of all."""
    tried: dict[str, Change] = {"cure": case.cure} if case.cure else {}
    if case.base.get("env:OMP_NUM_THREADS") != 1:
        tried["one-thread"] = {"env:OMP_NUM_THREADS": 1}
    if case.takes("num_workers"):
        for workers in (1, cores, 0):
            if workers != case.settings.values["num_workers"]:
                tried[f"workers-{workers}"] = {"num_workers": workers}
    tried.update({name: change for name, change in case.changes.items() if name not in NOT_TRIED_UNASKED})
    different: dict[str, Change] = {}
    for name, change in tried.items():
        if change not in different.values():
            different[name] = change
    return dict(list(different.items())[:most])
