#!/usr/bin/env python3
"""How often `fullbore compare --fail-if 'samples_per_s < -3%'` fails where nothing changed, and where a regression was
planted; and TraceML (PyPI), where that is installed, with `--max-step-time-regression-pct 3` on the same trainings.

  pip install --target /some/where traceml-ai
  bench/regressions.py [--traceml /some/where] [--pairs 20] [--seconds 4] [--planted 0.06] [--real-time] [--json FILE]

Each round trains three times in an order that a coin decides: as it is, as it is once more, and with steps that sleep
for 6 % of what they took. The first two are an identical pair, the first and the third a regressed one. Where TraceML
is there, it runs within `fullbore run`, so that both see the same steps.

`--real-time` gives the trainings a core before everything else (chrt -f 1, as root): for a machine that others use.
Targets: of twenty identical pairs at most one fails, of twenty regressed ones at least nineteen; 6 % is less than a
comparison of recordings can tell (docs/compare.md), and misses the second.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FULLBORE = Path(os.environ.get("FULLBORE", ROOT / "build/release/fullbore"))
TRAINING = ROOT / "bench/traceml_peer/training.py"
CONDITION = "samples_per_s < -3%"
LEAST_POINTS = "3"  # of TraceML
WIDTH = 1200  # of the model: steps of about 10 ms on a core of 2023
CONDITION_HOLDS = 3  # exit statuses of fullbore compare
COMPARED = 0
MOST_FALSE = 1 / 20
LEAST_SEEN = 19 / 20


class Trainings:
    """Trains in a folder, each time under a name."""

    def __init__(self, folder: Path, given: argparse.Namespace) -> None:
        self.folder, self.given = folder, given

    def train(self, name: str, slower: float) -> None:
        own = ["--width", WIDTH, "--seconds", self.given.seconds, "--clock", self.folder / f"{name}.json"]
        own += ["--slower", slower]
        command: list = ["chrt", "-f", "1"] if self.given.real_time else []
        command += [FULLBORE, "run", "--quiet", "-o", self.folder / "runs", "--run", name, "--", sys.executable]
        environment = {k: v for k, v in os.environ.items() if not k.startswith("FULLBORE_")} | {"OMP_NUM_THREADS": "1"}
        if self.given.traceml:
            environment["PYTHONPATH"] = str(self.given.traceml)
            command += [self.given.traceml / "bin/traceml", "run", "--mode", "summary"]
            command += ["--logs-dir", self.folder / "logs" / name, TRAINING, "--args", *own, "--marks"]
        else:
            command += [TRAINING, *own]
        done = subprocess.run(
            [str(part) for part in command], env=environment, cwd=self.folder, capture_output=True, text=True
        )
        if done.returncode != 0:
            sys.exit(f"{name} could not train:\n{done.stderr[-2000:]}")

    def fails(self, first: str, second: str) -> bool:
        command = [FULLBORE, "compare", "-o", "runs", first, second, "--fail-if", CONDITION]
        done = subprocess.run([str(part) for part in command], cwd=self.folder, capture_output=True, text=True)
        if done.returncode not in (COMPARED, CONDITION_HOLDS):
            sys.exit(f"{first} and {second} could not be compared:\n{done.stderr}")
        return done.returncode == CONDITION_HOLDS

    def traceml_fails(self, first: str, second: str) -> bool:
        summaries = [next((self.folder / "logs" / name).rglob("final_summary.json")) for name in (first, second)]
        output = self.folder / f"{first}-{second}"
        command = [sys.executable, self.given.traceml / "bin/traceml", "compare", *summaries, "--output", output]
        command += ["--max-step-time-regression-pct", LEAST_POINTS]
        environment = {**os.environ, "PYTHONPATH": str(self.given.traceml)}
        subprocess.run([str(part) for part in command], env=environment, capture_output=True)
        return json.loads(output.with_suffix(".json").read_text())["ci_policy"]["result"] == "SLOWER_IN_THIS_PAIR"


def round_of(trainings: Trainings, number: int, planted: float) -> dict[str, dict[str, bool]]:
    base, same, slower = (f"{kind}{number}" for kind in ("base", "same", "slower"))
    order = [(base, 0.0), (same, 0.0), (slower, planted)]
    random.shuffle(order)
    for name, part in order:
        trainings.train(name, part)
    tools = {"fullbore": trainings.fails}
    if trainings.given.traceml:
        tools["TraceML"] = trainings.traceml_fails
    return {tool: {"identical": fails(base, same), "regressed": fails(base, slower)} for tool, fails in tools.items()}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--traceml", type=Path, help="the folder that it was installed into")
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=4, help="of each training")
    parser.add_argument("--planted", type=float, default=0.06)
    parser.add_argument("--real-time", action="store_true")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    random.seed(1)
    rounds = []
    with tempfile.TemporaryDirectory() as folder:
        trainings = Trainings(Path(folder), given)
        for number in range(given.pairs):
            rounds.append(round_of(trainings, number, given.planted))
            print(f"round {number + 1}: {rounds[-1]}", flush=True)
    counts = {
        tool: {kind: sum(each[tool][kind] for each in rounds) for kind in ("identical", "regressed")}
        for tool in rounds[0]
    }
    for tool, failed in counts.items():
        print(f"{tool}: fails {failed['identical']} of {given.pairs} identical pairs", end=", ")
        print(f"{failed['regressed']} of {given.pairs} with a regression of {given.planted:.0%}")
    if given.json:
        given.json.write_text(json.dumps({"counts": counts, "rounds": rounds}, indent=2))
    ours = counts["fullbore"]
    return int(ours["identical"] > MOST_FALSE * given.pairs or ours["regressed"] < LEAST_SEEN * given.pairs)


if __name__ == "__main__":
    sys.exit(main())
