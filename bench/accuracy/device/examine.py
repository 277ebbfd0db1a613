"""One pair from start to end: its trace is written, fullbore explains it, and both are put beside the truth."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from functools import cache
from pathlib import Path

from both.findings import findings_of, names

from .advice import advised
from .causes import BFLOAT16
from .pair import Pair, period_of, true_share
from .program import Program
from .simulate import Run, simulate
from .trace import write_traces

LEAST_STEPS = 24  # for the truth before and after
EXPLAIN_LIMIT_S = 120


def examine(pair: Pair, fullbore: Path, scratch: Path) -> dict:
    """What was said and what is true, nothing judged yet."""
    recorded = simulate(pair.before, f"recorded {pair.name}")
    before, after = long_run(pair.before, f"before {pair.name}"), long_run(pair.after, f"after {pair.name}")
    result = described(pair)
    result["true"] = truth_of(pair, recorded, before, after)
    try:
        report = explain(fullbore, write_traces(recorded, scratch), what_if_of(pair))
    except (OSError, subprocess.SubprocessError, ValueError) as failure:
        return {**result, "failed": str(failure)}
    result.update(said(report), prediction=prediction(report, pair))
    if not names(result["findings"][0], pair.rule.expects):
        other = advised(result["findings"][0], pair.before)
        if other is not None:  # it may be as good as the planted cure
            result["true"]["advised_ns"] = round(long_run(other, f"advised {pair.name}").step_ns)
    return result


def described(pair: Pair) -> dict:
    program, rule = pair.before, pair.rule
    return {
        "case": pair.name,
        "cause": pair.cause,
        "about": f"{program.shape.family} on {program.ranks} x {program.device.name}, {pair.about}",
        "device": program.device_key,
        "ranks": program.ranks,
        "second": pair.second,
        "change": rule.change,
        "detail": pair.detail,
        "expects": list(rule.expects),
        "forbids": list(forbidden(pair)),
        "never": list(rule.never),
    }


def forbidden(pair: Pair) -> tuple[str, ...]:
    """Besides what is wrong for the cause: what the device cannot do."""
    program = pair.before
    has_bfloat16 = program.device.vendor == "amd" or program.device.capability >= (8, 0)
    return pair.rule.forbids + (() if has_bfloat16 else (BFLOAT16,))


def long_run(program: Program | None, seed: str) -> Run | None:
    """For longer than a recording, with noise of its own."""
    if program is None:
        return None
    period = period_of(program)
    steps = -(-LEAST_STEPS // period) * period
    program = replace(program, cold=False, warmup=-(-max(6, program.warmup) // period) * period)
    return simulate(program, seed, steps, recorded=False)


def truth_of(pair: Pair, recorded: Run, before: Run, after: Run | None) -> dict:
    true = {"step_times_ns": recorded.step_times, "before_ns": round(before.step_ns)}
    if after is not None:
        true["after_ns"] = round(after.step_ns)
    share = 1 - after.step_ns / before.step_ns if pair.rule.share == "cost" else true_share(pair.cause, recorded)
    if share is not None:
        true["share"] = share
    return true


def explain(fullbore: Path, traces: list[Path], what_if: str) -> dict:
    command = [str(fullbore), "explain", *map(str, traces), "-q", "--json", "-"]
    if what_if and "--what-if" in helped(fullbore):
        command += ["--what-if", what_if]
    done = subprocess.run(command, capture_output=True, text=True, timeout=EXPLAIN_LIMIT_S)
    if done.returncode:
        raise ValueError(f"ended with {done.returncode}: {done.stderr.strip()[-300:]}")
    return json.loads(done.stdout)


@cache
def helped(fullbore: Path) -> str:
    return subprocess.run([str(fullbore), "explain", "--help"], capture_output=True, text=True).stdout


def what_if_of(pair: Pair) -> str:
    """The planted cure in the words of `explain --what-if`; empty where it has none."""
    if not pair.rule.what_if:
        return ""
    return pair.detail if "=" in pair.detail else pair.rule.change


def prediction(report: dict, pair: Pair) -> dict | None:
    """The predicted step time with the planted cure. A what-if answers exactly that; without one, what the finding
    that names the planted cause promises, whatever change it has in mind."""
    if "step_time" not in report:
        return None
    if rungs := report.get("replay", {}).get("what_if"):
        step_ns, gain = rungs[-1]["step_ns"], rungs[-1]["speedup"]
        now_ns = step_ns * gain["expected"]
        return {"by": "what-if", "expected": step_ns, "low": now_ns / gain["high"], "high": now_ns / gain["low"]}
    step_ns = report["step_time"]["mean_ns"]
    for finding in report["findings"]:
        if "speedup" in finding and names(finding, pair.rule.expects):
            gain = finding["speedup"]
            times = {"expected": gain["expected"], "low": gain["high"], "high": gain["low"]}
            return {"by": "finding", **{name: step_ns / by for name, by in times.items()}}
    return None


def said(report: dict) -> dict:
    step = report.get("step_time", {})
    return {
        "findings": findings_of(report),
        "step_ns": step.get("mean_ns"),
        "steps": report["window"]["steps"],
        "warmup_steps": report["window"]["warmup_steps"],
        "shares": step.get("shares", {}),
        "replay_error": report.get("replay", {}).get("error"),
        "messages": report.get("messages", []),
    }
