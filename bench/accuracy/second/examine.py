"""One pair of the second simulator: fullbore predicts its cure from the recording, and the truth stands beside that.

Gains are compared, not step times: a recording is slower than the program by what the profiler costs, and both the
prediction and the truth are ratios of two programs under the same observer.
"""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from both.findings import findings_of
from device.examine import explain
from device.score import step_error

from .make import make


def examined(seed: int, fullbore: Path, scratch: Path) -> dict:
    """What was predicted and what is true, nothing judged yet."""
    truth = make(seed, scratch)
    result = {
        "case": str(seed),
        "cure": truth["cure"].partition("=")[0],
        **{name: truth[name] for name in ("device", "ranks", "family", "about")},
        "true": {"step_times_ns": truth["recorded_step_ns"]},
    }
    if "after_ns" in truth:
        result["true"]["gain"] = truth["before_ns"] / truth["after_ns"]
    try:
        report = explain(fullbore, sorted(scratch.glob("rank*.pt.trace.json")), truth["cure"])
    except (OSError, subprocess.SubprocessError, ValueError) as failure:
        return {**result, "failed": str(failure)}
    return {**result, **said(report)}


def said(report: dict) -> dict:
    rungs = report.get("replay", {}).get("what_if", [])
    return {
        "findings": findings_of(report),
        "judgeable": report.get("judgeable", True),
        "conditions": [each["id"] for each in report.get("fitness", [])],
        "step_ns": report.get("step_time", {}).get("mean_ns"),
        "steps": report["window"]["steps"],
        "warmup_steps": report["window"]["warmup_steps"],
        "prediction": rungs[-1]["speedup"] if rungs else None,
    }


@dataclass(frozen=True)
class Score:
    """Unknown is None."""

    error: float | None = None  # of the predicted step time with the cure, over the true one; negative: too fast
    in_range: bool | None = None
    width: float | None = None  # of the predicted range, high over low
    step_error: float | None = None  # of the recorded step time itself: 0 if the trace was read rightly


def score(result: dict) -> Score:
    if "failed" in result:
        return Score()
    off = step_error(result)
    predicted, true = result["prediction"], result["true"].get("gain")
    if not predicted or not true:
        return Score(step_error=off)
    return Score(
        error=true / predicted["expected"] - 1,
        in_range=predicted["low"] <= true <= predicted["high"],
        width=predicted["high"] / predicted["low"],
        step_error=off,
    )
