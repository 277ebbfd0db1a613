"""The edits of a fleet's report, as scripts/fleet_demo.py makes them to planted scripts: which argument does what an
edit recommends, and whether the changed jobs are as fast as was predicted, by the scripts' own clocks."""

from __future__ import annotations

import json
import statistics
from pathlib import Path

from demo_report import judge, recommended_workers, span

CASES = Path(__file__).resolve().parents[1] / "tests" / "planted" / "cases"
# By script and cause: what the finding recommends, in the words of the script.
ARGUMENTS = {
    ("logging_each_step", "logging"): "--every 10",  # every tenth step, which "leaves a tenth of it"
    ("validation", "validation"): "--every 40",  # "a quarter as often"
    ("storage", "blocked"): "--local",
    ("slow_sample", "slow-sample"): "--repair",
    ("own_generator", "own-iterator"): "--num-workers 1",  # "a Dataset behind DataLoader(num_workers=...)"
}
TAKE_WORKERS = {"no_workers", "own_generator"}
HEADING = f"{'an edit, made':<37} {'predicted':<22} {'measured':<22} a step"
PERIOD = 40  # steps after which every script has done all that it does now and then


def argument(case: str, edit: dict) -> str:
    """What does the edit to the script; empty where it has no such argument."""
    workers = recommended_workers({"findings": [edit]})
    if workers is not None and case in TAKE_WORKERS:
        return f"--num-workers {workers}"
    return ARGUMENTS.get((case, edit["cause"]), "")


def step_s(truth: Path, warmup: int) -> float:
    """The script's own mean time of a step, of the last whole periods after the warm-up."""
    steps = [step["wall"] for step in json.loads(truth.read_text())["steps"][warmup:]]
    return statistics.fmean(steps[len(steps) % PERIOD :])


def gain_of(before_s: list[float], after_s: list[float]) -> dict[str, float]:
    """How many times as fast, of runs by turns: the median of the pairs, the lowest and the highest."""
    pairs = [before / after for before, after in zip(before_s, after_s, strict=True)]
    return {"low": min(pairs), "expected": statistics.median(pairs), "high": max(pairs)}


def holds(measured: dict[str, float], predicted: dict[str, float]) -> bool:
    return predicted["low"] <= measured["expected"] <= predicted["high"]


def outcome(measured: dict[str, float], predicted: dict[str, float]) -> str:
    verdict = "faster" if measured["low"] > 1 else "not-proven"
    return "held" if holds(measured, predicted) else judge({"gain": measured, "verdict": verdict}, predicted)


def row(edit: str, before_s: list[float], after_s: list[float], predicted: dict[str, float]) -> str:
    measured = gain_of(before_s, after_s)
    times = f"{1e3 * statistics.median(before_s):.0f} to {1e3 * statistics.median(after_s):.0f} ms"
    columns = f"{edit:<37} {span(predicted):<22} {span(measured):<22} {times:<13}"
    return f"{columns} {outcome(measured, predicted)}"
