"""`exam.py second`: pairs of the second simulator, one line of results each, and their table."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

from both.tables import errors, grouped, half_of, proportion, read_results, table
from device.run import seeds_of
from device.summary import known, width

from .examine import Score, examined, score

SEEDS = 400
COLUMNS = (
    ("step time with the cure off by (median / p95)", lambda cases: errors(known(cases, "error"))),
    ("range holds the truth", lambda cases: proportion(known(cases, "in_range"))),
    ("range, high / low", width),
    ("no prediction", lambda cases: str(sum(bool(result["cure"]) for result, _ in cases) - len(known(cases, "error")))),
)


def markdown(results: list[dict], half: str) -> str:
    cases = [(result, score(result)) for result in half_of(results, half)]
    if not cases:
        return "No pairs of the second simulator yet."
    commits = ", ".join(sorted({str(result.get("commit", "?")) for result, _ in cases}))
    blocks = [f"Second simulator, {half} seeds, {len(cases)} pairs; commit {commits}. {reading(cases)}"]
    blocks += [table({"all": cases}, "", COLUMNS)]
    blocks += [table(grouped(cases, member), member, COLUMNS) for member in ("cure", "family", "device")]
    blocks += ["The worst pairs:\n\n" + ("\n".join(line_of(*case) for case in worst(cases)) or "None.")]
    return "\n\n".join(blocks)


def reading(cases: list[tuple[dict, Score]]) -> str:
    """Whether the recordings were understood at all."""
    off = [abs(each) for each in known(cases, "step_error")]
    refused = sum(not result.get("judgeable", True) for result, _ in cases)
    largest = f", their step time off by {100 * max(off):.2f} % at most" if off else ""
    return f"{len(off)} were divided into the steps that were simulated{largest}; {refused} were refused."


def worst(cases: list[tuple[dict, Score]], count: int = 8) -> list[tuple[dict, Score]]:
    missed = [case for case in cases if case[1].in_range is False]
    return sorted(missed, key=lambda case: -abs(case[1].error))[:count]


def line_of(result: dict, of: Score) -> str:
    what = f"{result['family']} on {result['ranks']} x {result['device']}"
    head = f"- `{result['case']}` ({result['cure'] or 'healthy'}): {what}"
    if "failed" in result:
        return f"{head}: failed: {result['failed'].splitlines()[0][:100]}"
    if not result["cure"]:
        return f"{head}: said {result['findings'][0]['id']}"
    if of.error is None:
        return f"{head}: not predicted ({', '.join(result['conditions']) or result['findings'][0]['id']})"
    said = result["prediction"]
    span = f"{said['expected']:.2f}x ({said['low']:.2f} to {said['high']:.2f})"
    return f"{head}: {result['true']['gain']:.2f}x, predicted {span}"


def run(arguments: argparse.Namespace, commit: str) -> int:
    if not arguments.fullbore.exists():
        sys.exit(f"exam.py: no {arguments.fullbore}\nhint: make build")
    finished = {result["case"] for result in read_results(arguments.results)}
    todo = [seed for seed in seeds_of(arguments.seeds, SEEDS)[: arguments.pairs] if str(seed) not in finished]
    arguments.results.parent.mkdir(parents=True, exist_ok=True)
    begin = time.monotonic()
    for number, seed in enumerate(todo):
        with tempfile.TemporaryDirectory(prefix="fullbore-exam-") as scratch:
            folder = arguments.keep / str(seed) if arguments.keep else Path(scratch)
            folder.mkdir(parents=True, exist_ok=True)
            result = {**examined(seed, arguments.fullbore, folder), "commit": commit}
        with open(arguments.results, "a") as file:
            file.write(json.dumps(result) + "\n")
        left_s = (time.monotonic() - begin) / (number + 1) * (len(todo) - number - 1)
        print(f"{number + 1}/{len(todo)}  {line_of(result, score(result))}  [{left_s:.0f} s left]", file=sys.stderr)
    print(f"\n{markdown(read_results(arguments.results), 'both')}")
    return 0
