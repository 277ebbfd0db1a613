#!/usr/bin/env python3
"""Does a training on padded batches gain what the finding `padding` promises? Small models (padding/program.py)
are recorded with batches of one width and with batches as wide as their longest text; what the report promises of the
other ways to put texts together is compared with useful tokens a second by the program's own clock, in turns of a
second (both/turns.py). Two minutes a model, four where texts can be packed: in models whose loss is each next word's.

    bench/accuracy/padding.py [MODEL ...] [--seconds 15] [--json FILE]

Prints a row for each change. Ends with 1 where the speed with the change is off by more than 8 % (median), or the
report promises a range that the gain is outside of in more than 15 % of them.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from both.turns import Failed, rates_in_turns

ROOT = Path(__file__).resolve().parents[2]
FULLBORE = Path(os.environ.get("FULLBORE", ROOT / "build/release/fullbore"))
PROGRAM = Path(__file__).with_name("padding") / "program.py"
MODELS = ("encoder", "bert", "causal", "lstm", "gru", "conv", "distil", "nano", "electra", "tcn", "llama")
PACKED = ("causal", "nano", "llama")
ALLOWED, HELD = 0.08, 0.85
ENDLESS_S = 1_000_000
# How the report's advice for each way begins, and the change that it calls it.
WORDS = {
    "longest": "pad each batch to its own longest",
    "grouped": "put samples of like length together",
    "packed": "where each token has a loss of its own",
}
CHANGES = {"longest": 'padding="longest"', "grouped": "batches of samples of like length"}


def command(model: str, batches: str, seconds: float) -> list[str]:
    return [sys.executable, str(PROGRAM), "--model", model, "--batches", batches, "--seconds", str(seconds)]


def output(words: list[str], folder: Path) -> str:
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"padding.py: {' '.join(words)}: {done.stderr[-2000:]}")
    return done.stdout


def finding(model: str, batches: str, seconds: float, folder: Path) -> dict | None:
    report = folder / "report.json"
    output([str(FULLBORE), "run", "--quiet", "--json", str(report), "--", *command(model, batches, seconds)], folder)
    found = [each for each in json.loads(report.read_text())["findings"] if each["id"] == "padding"]
    return found[0] if found else None


def promised(found: dict, way: str) -> tuple[float | None, dict | None]:
    """The gain that is expected of a way, and where it is the recommended one its range."""
    words = [fix for fix in found["fix"] if fix.startswith(WORDS[way])]
    gain = re.search(r", ([\d.]+)x\)$", words[0]) if words else None
    return float(gain[1]) if gain else None, found.get("speedup") if found.get("change") == CHANGES.get(way) else None


def row(model: str, before: str, after: str, found: dict | None, gain: float) -> dict:
    expected, span = promised(found, after) if found else (None, None)
    return {
        "model": model,
        "change": f"{before} to {after}",
        "measured": round(gain, 3),
        "expected": expected,
        "off": None if expected is None else round(abs(gain / expected - 1), 3),
        "range": None if span is None else [round(span["low"], 3), round(span["high"], 3)],
        "held": None if span is None else bool(span["low"] <= gain <= span["high"]),
    }


def changes(model: str) -> list[tuple[str, str]]:
    both = [("fixed", "longest"), ("fixed", "grouped"), ("longest", "grouped")]
    return both + [("fixed", "packed"), ("longest", "packed")] * (model in PACKED)


def examine(model: str, seconds: float, folder: Path) -> list[dict]:
    found = {way: finding(model, way, seconds, folder) for way in ("fixed", "longest")}
    rows = []
    for before, after in changes(model):
        programs = [command(model, way, ENDLESS_S) for way in (before, after)]
        as_is, changed = rates_in_turns(*programs, dict(os.environ), folder, seconds)
        rows.append(row(model, before, after, found[before], changed / as_is))
    return rows


def show(one: dict) -> None:
    words = "no promise" if one["expected"] is None else f"{one['expected']:.2f}x expected, off by {one['off']:.1%}"
    if one["range"]:
        words += f", {one['range'][0]:.2f}x to {one['range'][1]:.2f}x {'held' if one['held'] else 'NOT held'}"
    print(f"{one['model']:8} {one['change']:19} {one['measured']:.2f}x measured, {words}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", metavar="MODEL", default=MODELS)
    parser.add_argument("--seconds", type=float, default=15, help="that are recorded, and of each sum of turns (15)")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for model in args.models:
            for one in examine(model, args.seconds, Path(folder)):
                rows.append(one)
                show(one)
    if args.json:
        args.json.write_text("".join(json.dumps(one) + "\n" for one in rows))
    off = [one["off"] for one in rows if one["off"] is not None]
    held = [one["held"] for one in rows if one["held"] is not None]
    print(f"off by {median(off):.1%} (median), {sum(held)} of {len(held)} ranges held")
    sys.exit(median(off) > ALLOWED or sum(held) < HELD * len(held))


if __name__ == "__main__":
    try:
        main()
    except Failed as why:
        sys.exit(f"padding.py: {why}")
