#!/usr/bin/env python3
"""How well `fullbore compare` tells two commands apart: in turns of a moment, and by whole runs.

Pairs of programs of known work (the same one twice, 5 % and 20 % less) are compared again and again, both ways, beside
neighbours that come and go. Of each way: how often the interval holds the true gain, how often the one that is not
faster is called so, how often a gain is found, how wide the intervals are, and how long it took. With --peer, the same
is asked of train-doctor (`pip install train-doctor==0.2.0`, in an environment of its own), with its own five pairs.

    bench/proof.py [--fullbore PATH] [--rounds N] [--load N] [--budget TIME] [--peer TRAIN-DOCTOR] [--json FILE]
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator

ROOT = pathlib.Path(__file__).resolve().parents[1]
PYTHON = os.environ.get("FULLBORE_BENCH_PYTHON", str(ROOT / ".venv" / "bin" / "python"))
UNITS = 200  # of work in the baseline's step: all else that a step does takes about a hundredth of that
GAINS = (1.0, 1.05, 1.2)
WAYS = {"slices": [], "whole-runs": ["--whole-runs", "--most", "20s"]}
PEER = "train-doctor"

# A step of so many matrix products.
PROGRAM = """
import gc, sys, torch
torch.set_num_threads(1)
gc.disable()
units = int(sys.argv[1])
matrix = torch.randn(128, 128)
parameter = torch.nn.Parameter(torch.zeros(8))
optimizer = torch.optim.SGD([parameter], lr=0.1)
while True:
    optimizer.zero_grad()
    for _ in range(units):
        matrix @ matrix
    parameter.sum().backward()
    optimizer.step()
"""
# Computes for some seconds, and rests for some.
NEIGHBOUR = """
import random, sys, time
chance = random.Random(int(sys.argv[1]))
while True:
    until = time.monotonic() + chance.uniform(0.5, 6)
    while time.monotonic() < until:
        pass
    time.sleep(chance.uniform(0.5, 6))
"""


@contextlib.contextmanager
def neighbours(count: int) -> Iterator[None]:
    # In sessions of their own, as another user's programs are: the kernel shares the cores between sessions.
    started = [
        subprocess.Popen([sys.executable, "-c", NEIGHBOUR, str(random.random())[2:]], start_new_session=True)
        for _ in range(count)
    ]
    try:
        yield
    finally:
        for process in started:
            process.kill()
            process.wait()


def asked(command: list[str], directory: str) -> dict:
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True)
    try:
        return json.loads(done.stdout)
    except ValueError:
        raise SystemExit(f"{command[0]}: {done.stderr}") from None


def said_by_peer(said: dict) -> dict:
    ratio = said.get("ratio")
    gain = {"expected": ratio["point"], "low": ratio["low"], "high": ratio["high"]} if ratio else None
    return {"turns": "whole-runs", "verdict": said["verdict"], "gain": gain}


def compared(way: str, gain: float, options: argparse.Namespace, directory: str) -> dict:
    units = round(UNITS / gain)
    commands = [f"'{PYTHON}' program.py {each}" for each in (UNITS, units)]
    both = ["--baseline", commands[0], "--candidate", commands[1]]
    begin = time.monotonic()
    if way == PEER:
        said = said_by_peer(asked([options.peer, "compare", "--json", "--quiet", *both], directory))
    else:
        compare = [options.fullbore, "compare", "--json", "-", "--budget", options.budget]
        said = asked([*compare, *WAYS[way], *both], directory)
    kept = {name: said[name] for name in ("turns", "verdict", "gain")}
    return {"way": way, "truth": UNITS / units, **kept, "seconds": time.monotonic() - begin}


def summary(rows: list[dict]) -> str:
    known = [row for row in rows if row["gain"]]
    holds = sum(row["gain"]["low"] <= row["truth"] <= row["gain"]["high"] for row in known)
    wrong = sum(row["verdict"] in ("faster", "slower") for row in rows if row["truth"] == 1)
    wrong += sum(row["verdict"] == "slower" for row in rows if row["truth"] > 1)
    better = [row for row in rows if row["truth"] > 1]
    found = sum(row["verdict"] == "faster" for row in better)
    off = [abs(math.log(row["gain"]["expected"] / row["truth"])) for row in known]
    wide = [row["gain"]["high"] / row["gain"]["low"] for row in known]
    seconds = statistics.median(row["seconds"] for row in rows)
    middle = f"{statistics.median(off):6.1%} {statistics.median(wide):6.2f}" if known else f"{'-':>6} {'-':>6}"
    return f"{holds:3} of {len(known):<3} {wrong:5} {found:5} of {len(better):<3} {middle} {seconds:7.0f} s"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fullbore", default=str(ROOT / "build" / "release" / "fullbore"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--load", type=int, default=0, help="programs beside it, that come and go")
    parser.add_argument("--budget", default="75s", help="of each comparison of ours")
    parser.add_argument("--peer", metavar="TRAIN-DOCTOR", help="the program to compare with, in its own environment")
    parser.add_argument("--json", type=pathlib.Path, help="each comparison, one a line")
    options = parser.parse_args()
    if options.peer:
        options.peer = os.path.abspath(options.peer)
    ways = [*WAYS, *([PEER] if options.peer else [])]
    rows: list[dict] = []
    with tempfile.TemporaryDirectory() as directory, neighbours(options.load):
        (pathlib.Path(directory) / "program.py").write_text(PROGRAM)
        for _ in range(options.rounds):
            for gain in GAINS:
                for way in ways:
                    row = compared(way, gain, options, directory)
                    rows.append(row)
                    gain_said = row["gain"] or {"expected": 0, "low": 0, "high": 0}
                    print(
                        f"{way:12} true {row['truth']:.2f}x: {row['verdict']:10}"
                        f" {gain_said['expected']:.2f}x ({gain_said['low']:.2f} to {gain_said['high']:.2f}),"
                        f" {row['seconds']:.0f} s",
                        file=sys.stderr,
                        flush=True,
                    )
                    if options.json:
                        options.json.write_text("".join(json.dumps(each) + "\n" for each in rows))
    print(f"beside {options.load} programs, load {os.getloadavg()[0]:.1f}")
    print(f"{'':12} {'holds':>10} {'wrong':>5} {'found':>12} {'off':>6} {'wide':>6} {'took':>9}")
    for way in ways:
        print(f"{way:12} {summary([row for row in rows if row['way'] == way])}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
