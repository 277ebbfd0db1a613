"""What one finished pair says of the verdict. Pure: results on file can be judged again at any time."""

from __future__ import annotations

import re
from dataclasses import dataclass

from both.findings import names

WORTH_PROMISING = 1.05  # a promise below this is none
LEAST_NOISE = 0.03  # runs that differ by less are equal


@dataclass(frozen=True)
class Score:
    """Unknown is None."""

    right: bool  # the first finding names what was planted, or its advice is as good as the cure
    listed: bool  # some finding does
    misadvised: str = ""  # the promise that must not have been made
    share_error: float | None = None  # of the right finding's share against the true one
    error: float | None = None  # of the predicted step time with the cure, against the true one; negative: too fast
    in_range: bool | None = None
    width: float | None = None  # of the predicted range, high over low
    step_error: float | None = None  # of the recorded step time itself: 0 if the trace was read rightly


def score(result: dict) -> Score:
    findings = result["findings"]
    true, predicted = result["true"], result.get("prediction")
    after_ns = true.get("after_ns")
    scored: dict = {
        "right": is_right(result),
        "listed": any(names(finding, result["expects"]) for finding in findings),
        "misadvised": misadvised(result),
        "step_error": step_error(result),
    }
    by_pattern = (finding for pattern in result["expects"] for finding in findings if names(finding, (pattern,)))
    named = next(by_pattern, None)
    if named is not None and "share" in true and "share" in named:
        scored["share_error"] = named["share"] - true["share"]
    if predicted and after_ns:
        scored["error"] = predicted["expected"] / after_ns - 1
        scored["in_range"] = predicted["low"] <= after_ns <= predicted["high"]
        scored["width"] = predicted["high"] / predicted["low"]
    return Score(**scored)


def is_right(result: dict) -> bool:
    first = result["findings"][0]
    if first["id"] in result["never"]:
        return False
    # One step can show what it spent its time on, not that this is how the program always is.
    if result["cause"] == "single-step" and first.get("severity") == "critical":
        return False
    return names(first, result["expects"]) or as_good(result)


def as_good(result: dict) -> bool:
    """Another finding comes first, and what it advises truly gains as much as the planted cure."""
    true = result["true"]
    if "advised_ns" not in true or "after_ns" not in true:
        return False
    gain, cure = (true["before_ns"] / true[name] for name in ("advised_ns", "after_ns"))
    return gain >= WORTH_PROMISING and gain >= cure * (1 - LEAST_NOISE)


def misadvised(result: dict) -> str:
    for finding in result["findings"]:
        if finding.get("speedup", {}).get("expected", 1.0) < WORTH_PROMISING:
            continue
        advice = " ".join([finding.get("change", ""), *finding.get("fix", [])])
        if any(re.search(pattern, advice, re.IGNORECASE) for pattern in result["forbids"]):
            return f"{finding['id']}: {advice}"
    return ""


def step_error(result: dict) -> float | None:
    """Against the steps that the report is of: the recorded ones without its warm-up."""
    times = result["true"]["step_times_ns"][result["warmup_steps"] :]
    if not result["step_ns"] or len(times) != result["steps"]:
        return None
    return result["step_ns"] / (sum(times) / len(times)) - 1
