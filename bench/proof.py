#!/usr/bin/env python3
"""How well `fullbore compare` tells two commands apart: in turns of a moment, and by whole runs.

A laboratory of programs whose gains are known, because each step is so many units of one kind of work: matrix products
on one thread or two, Python code, copies of memory, waits, workers of a loader; or half of its work, and in every
twentieth step what is left of twenty, as a validation or as anybody's. What a step takes with all of its units and with
none is measured at first, of each kind. Of 24 candidates 8 do what the baseline does, 8 do 5 % less, and 8 have gains
of 0.8 to 3, drawn by the seed. Each pair is compared in each way, beside neighbours that come and go. Of
each way: how often the interval holds the true gain, and is at most 3 % to each side; how often the one that is not
faster is called so; how often a gain is found; how wide the intervals are, and how long it took. With --peer, the same
is asked of train-doctor (`pip install train-doctor==0.2.0`, in an environment of its own), with its own five pairs.

    bench/proof.py [--fullbore PATH] [--programs N] [--seed N] [--load N] [--budget TIME] [--ways slices,whole-runs]
                   [--peer TRAIN-DOCTOR] [--json FILE]
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
UNITS = 240  # of work in the baseline's step
SMALL_GAIN = 1.05
GAINS = (0.8, 3.0)
NARROW = 1.03 / 0.97  # high over low, of an interval of 3 % to each side
WAYS = {"slices": [], "whole-runs": ["--whole-runs", "--most", "20s"]}
PEER = "train-doctor"

# What a step, or in "workers" a worker for each batch, does with its units.
KINDS = {
    "matrices": "for _ in range(units): matrix @ matrix",
    "two-threads": "for _ in range(units // 4): large @ large",
    "python": "for at in range(units * 1000): pass",
    "copies": "for _ in range(units // 4): target.copy_(source)",
    "waits": "time.sleep(units * 4e-5)",
    "workers": "for _ in range(units): matrix @ matrix",
    "seldom": "for _ in range(units // 2 * (1 if next(turn) % 20 else 21)): matrix @ matrix",
    "validation": """for _ in range(units // 2): matrix @ matrix
    if next(turn) % 20 == 0:
        model.eval()
        for _ in range(units * 10): matrix @ matrix
        model.train()""",
}
PROGRAM = """
import gc, itertools, statistics, sys, time, torch
kind, units, steps = sys.argv[1], int(sys.argv[2]), int((sys.argv + [0])[3])
torch.set_num_threads(2 if kind == "two-threads" else 1)
gc.disable()
matrix, large = torch.randn(128, 128), torch.randn(256, 256)
model, turn = torch.nn.Linear(8, 8), itertools.count()
source, target = torch.zeros(250_000), torch.zeros(250_000)

def work():
    {work}

class Batches(torch.utils.data.IterableDataset):
    def __iter__(self):
        while True:
            work()
            yield parameter.detach()

parameter = torch.nn.Parameter(torch.zeros(8))
optimizer = torch.optim.SGD([parameter], lr=0.1)

ends = []

def step():
    optimizer.zero_grad()
    parameter.sum().backward()
    optimizer.step()
    if steps:
        ends.append(time.perf_counter())
        if len(ends) > steps:
            times = [b - a for a, b in zip(ends[steps // 4 :], ends[steps // 4 + 1 :])]
            print((statistics.mean if kind in ("seldom", "validation") else statistics.median)(times))
            sys.exit()

if kind == "workers":
    for _ in torch.utils.data.DataLoader(Batches(), batch_size=None, num_workers=1):
        step()
while True:
    work()
    step()
"""
CALIBRATION_STEPS = 240  # of which three quarters count: nine times twenty
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
def neighbours(count: int, seed: int) -> Iterator[None]:
    # In sessions of their own, as another user's programs are: the kernel shares the cores between sessions.
    started = [
        subprocess.Popen([sys.executable, "-c", NEIGHBOUR, str(seed + number)], start_new_session=True)
        for number in range(count)
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
    return {"turns": "whole-runs", "verdict": said["verdict"], "gain": gain, "pairs": None}


def drawn(seed: int) -> tuple[str, int]:
    """A kind of program, and the units of its candidate."""
    chance = random.Random(seed)
    kind = list(KINDS)[seed % len(KINDS)]
    gain = (1.0, SMALL_GAIN, chance.uniform(*GAINS))[seed // len(KINDS) % 3]
    return kind, round(UNITS / gain / 4) * 4


def step_s(kind: str, units: int, directory: str) -> float:
    command = [PYTHON, f"{kind}.py", kind, str(units), str(CALIBRATION_STEPS)]
    return float(subprocess.run(command, cwd=directory, capture_output=True, text=True, check=True).stdout)


def constant_part(kind: str, directory: str) -> float:
    """Of a baseline's step, the share that does not depend on its units."""
    pairs = [(step_s(kind, 0, directory), step_s(kind, UNITS, directory)) for _ in range(3)]
    return statistics.median(without / whole for without, whole in pairs)


def gain_of(units: int, constant: float) -> float:
    return 1 / (constant + (1 - constant) * units / UNITS)


def compared(way: str, kind: str, units: int, options: argparse.Namespace, directory: str) -> dict:
    commands = [f"'{PYTHON}' {kind}.py {kind} {each}" for each in (UNITS, units)]
    both = ["--baseline", commands[0], "--candidate", commands[1]]
    begin = time.monotonic()
    if way == PEER:
        said = said_by_peer(asked([options.peer, "compare", "--json", "--quiet", *both], directory))
    else:
        compare = [options.fullbore, "compare", "--json", "-", "--budget", options.budget]
        said = asked([*compare, *WAYS[way], *both], directory)
    kept = {name: said[name] for name in ("turns", "verdict", "gain", "pairs")}
    truth = gain_of(units, options.constants[kind])
    return {"way": way, "kind": kind, "truth": truth, **kept, "seconds": time.monotonic() - begin}


def is_wrong(row: dict) -> bool:
    return row["verdict"] == "faster" and row["truth"] <= 1 or row["verdict"] == "slower" and row["truth"] >= 1


def is_right(row: dict) -> bool:
    return row["verdict"] == ("faster" if row["truth"] > 1 else "slower")


def share(part: list, whole: list) -> str:
    return f"{len(part)} of {len(whole)}"


def summary(rows: list[dict]) -> str:
    known = [row for row in rows if row["gain"]]
    holds = [row for row in known if row["gain"]["low"] <= row["truth"] <= row["gain"]["high"]]
    narrow = [row for row in known if row["gain"]["high"] <= row["gain"]["low"] * NARROW]
    small = [row for row in rows if 1.03 < row["truth"] < 1.06]
    others = [row for row in rows if row["truth"] != 1 and row not in small]
    off = [abs(math.log(row["gain"]["expected"] / row["truth"])) for row in known]
    wide = [row["gain"]["high"] / row["gain"]["low"] for row in known if row["gain"]["low"] > 0]
    middle = f"{statistics.median(off):6.1%} {statistics.median(wide):6.2f}" if wide else f"{'-':>6} {'-':>6}"
    counts = [share(holds, known), share(narrow, known), str(sum(map(is_wrong, rows)))]
    counts += [share(list(filter(is_right, among)), among) for among in (small, others)]
    seconds = statistics.median(row["seconds"] for row in rows)
    return " ".join(f"{each:>9}" for each in counts) + f" {middle} {seconds:6.0f} s"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fullbore", default=str(ROOT / "build" / "release" / "fullbore"))
    parser.add_argument("--programs", type=int, default=24)
    parser.add_argument("--seed", type=int, default=0, help="of the first program")
    parser.add_argument("--load", type=int, default=0, help="programs beside it, that come and go")
    parser.add_argument("--budget", default="60s", help="of each comparison of ours")
    parser.add_argument("--ways", type=lambda given: given.split(","), default=list(WAYS), help="slices,whole-runs")
    parser.add_argument("--peer", metavar="TRAIN-DOCTOR", help="the program to compare with, in its own environment")
    parser.add_argument("--json", type=pathlib.Path, help="each comparison, one a line")
    options = parser.parse_args()
    if unknown := [way for way in options.ways if way not in WAYS]:
        parser.error(f"there is no way '{unknown[0]}': {', '.join(WAYS)}")
    if options.programs < 1:
        parser.error("--programs is at least 1")
    if options.peer:
        options.peer = os.path.abspath(options.peer)
    ways = [*options.ways, *([PEER] if options.peer else [])]
    rows: list[dict] = []
    with tempfile.TemporaryDirectory() as directory, contextlib.ExitStack() as beside:
        for kind, work in KINDS.items():
            (pathlib.Path(directory) / f"{kind}.py").write_text(PROGRAM.replace("{work}", work))
        options.constants = {kind: constant_part(kind, directory) for kind in KINDS}
        shares = ", ".join(f"{kind} {share:.1%}" for kind, share in options.constants.items())
        print(f"a step without its units: {shares}", file=sys.stderr)
        beside.enter_context(neighbours(options.load, options.seed))
        for seed in range(options.seed, options.seed + options.programs):
            kind, units = drawn(seed)
            for way in ways:
                row = {"seed": seed, **compared(way, kind, units, options, directory)}
                rows.append(row)
                gain_said = row["gain"] or {"expected": 0, "low": 0, "high": 0}
                print(
                    f"{seed:3} {way:12} {kind:12} true {row['truth']:.2f}x: {row['verdict']:10}"
                    f" {gain_said['expected']:.2f}x ({gain_said['low']:.2f} to {gain_said['high']:.2f}),"
                    f" {row['turns']}, {row['seconds']:.0f} s{'   WRONG' if is_wrong(row) else ''}",
                    file=sys.stderr,
                    flush=True,
                )
                if options.json:
                    options.json.write_text("".join(json.dumps(each) + "\n" for each in rows))
    print(f"beside {options.load} programs, load {os.getloadavg()[0]:.1f}")
    names = ["holds", "within 3%", "wrong", "5% found", "others"]
    print(f"{'':12} {' '.join(f'{name:>9}' for name in names)} {'off':>6} {'wide':>6} {'took':>8}")
    for way in ways:
        print(f"{way:12} {summary([row for row in rows if row['way'] == way])}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
