"""The planted cases of the tests that have a fix, as cases of the exam: their scripts, their own clocks."""

from __future__ import annotations

import re
import sys

from .case import Case, Change
from .laboratory import ROOT
from .settings import Settings

sys.path.insert(0, str(ROOT / "tests" / "planted"))
import planted_case  # noqa: E402

DEFAULT_WORKERS = re.compile(r'"--num-workers", type=int, default=(\d+)')

STEPS = 120  # twice as many as the tests take: here gains are measured


def planted() -> list[Case]:
    return [from_test(case) for case in planted_case.all_cases() if case["FIX"] and not case.missing()]


def from_test(test: planted_case.Case) -> Case:
    """FIX is the switch that removes the cause, or num_workers."""
    text = test.script.read_text()
    values: dict = {"truth": "", "photos": "", "scratch": "", "steps": STEPS}
    cause = test["EXPECT"].split()[-1]
    cure: Change
    if test["FIX"] == "num_workers":
        values["num_workers"] = int(DEFAULT_WORKERS.search(text).group(1))
        cure, changes = {"num_workers": 2}, {}
    else:
        values[test["FIX"]] = False
        cure = {test["FIX"]: True}
        changes = {cause: cure}
    return Case(
        name=f"planted-{test.name}",
        cause=cause,
        about=test["PLANTED"],
        script=text,
        settings=Settings("arguments", values),
        changes=changes,
        cure=cure,
        base={"photos": "photos", "scratch": ".", "steps": STEPS, "env:OMP_NUM_THREADS": 1},
        expects=(test["EXPECT"],),
        clock="truth",
        file=test.script,
    )
