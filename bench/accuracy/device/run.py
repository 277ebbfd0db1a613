"""`exam.py device`: many pairs, one line of results each, interrupted and continued at any time."""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from pathlib import Path

from both.tables import read_results

from .examine import examine
from .pair import Pair
from .plant import generated
from .summary import as_json, markdown

SEEDS = 600
ORDER = 20261122  # any number: the order of the pairs, so that every part of a run is a fair sample


def seeds_of(which: str, below: int) -> list[int]:
    seeds = [seed for seed in range(below) if which == "both" or (seed % 2 == 1) == (which == "odd")]
    random.Random(ORDER).shuffle(seeds)
    return seeds


def run(arguments: argparse.Namespace, commit: str) -> int:
    if not arguments.fullbore.exists():
        sys.exit(f"exam.py: no {arguments.fullbore}\nhint: make build")
    wanted = arguments.only or seeds_of(arguments.seeds, arguments.programs)[: arguments.pairs]
    finished = {result["case"] for result in read_results(arguments.results)}
    todo = [seed for seed in wanted if str(seed) not in finished]
    print(f"{len(todo)} pairs, {len(wanted) - len(todo)} finished before; results in {arguments.results}", flush=True)
    arguments.results.parent.mkdir(parents=True, exist_ok=True)
    try:
        examine_all(todo, arguments, commit)
    except KeyboardInterrupt:
        print("\nstopped; the same command continues", file=sys.stderr)
        return 130
    results = read_results(arguments.results)
    print(json.dumps(as_json(results, "both")) if arguments.json else f"\n{markdown(results, 'both')}")
    return 0


def examine_all(todo: list[int], arguments: argparse.Namespace, commit: str) -> None:
    begin = time.monotonic()
    for number, seed in enumerate(todo):
        with tempfile.TemporaryDirectory(prefix="fullbore-exam-") as scratch:
            folder = Path(scratch)
            if arguments.keep:
                folder = arguments.keep / str(seed)
                folder.mkdir(parents=True, exist_ok=True)
            result = {**examine(generated(seed), arguments.fullbore, folder), "commit": commit}
        with open(arguments.results, "a") as file:
            file.write(json.dumps(result) + "\n")
        left_s = (time.monotonic() - begin) / (number + 1) * (len(todo) - number - 1)
        print(f"{number + 1}/{len(todo)}  {line_of(result)}  [{left_s:.0f} s left]", file=sys.stderr, flush=True)


def line_of(result: dict) -> str:
    head = f"{result['case']:>4} {result['cause']}:"
    if "failed" in result:
        return f"{head} failed: {result['failed'].splitlines()[0][:100]}"
    first = result["findings"][0]
    true = result["true"]
    after = f" -> {true['after_ns'] / 1e6:.2f}" if "after_ns" in true else ""
    return f"{head} said {first['id']} {first.get('cause', '')}, {true['before_ns'] / 1e6:.2f}{after} ms"


def described(pair: Pair) -> str:
    """For `exam.py show`: the program as the simulator has it."""
    lines = [f"# {pair.cause}: {pair.about}", f"# cured by {pair.rule.change or 'nothing'} {pair.detail}".rstrip()]
    if pair.second:
        lines.append(f"# beside it, smaller: {pair.second}")
    return "\n".join([*lines, f"before = {pair.before}", f"after  = {pair.after}"])
