#!/usr/bin/env python3
"""How often `fullbore compare --fail-if 'samples_per_s < -3%'` fails where nothing changed, and where a regression was
planted; and TraceML (PyPI), where that is installed, with `--max-step-time-regression-pct 3` on the same trainings.

  pip install --target /some/where traceml-ai
  bench/regressions.py [--traceml /some/where] [--pairs 20] [--starts 7] [--seconds 10] [--planted 0.06] [--real-time]
                       [--keep FOLDER] [--json FILE]
  bench/regressions.py --in-turns 2m [--pairs 20] [--planted 0.06] [--json FILE]

The training as it is is started so many times as a baseline, once more for each pair (identical), and once for each
with steps that compute for 6 % of what they took (regressed): all of them in an order that chance decides, so that what
the machine's other users do meets them alike. Then each of the latter is compared with one start of the baseline (`A
B`) and with all of them (`--new`); and as often eight starts with eight others (`8 --new 8`), drawn by chance from all
unchanged trainings, or from these and the regressed. Where TraceML is there, it runs within `fullbore run`, so that
both see the same steps, and its change of the step time is held against its 3 %: it asks for a declaration in a file of
its own before it says so itself.

With `--in-turns`, no recordings are compared but commands (`fullbore compare --baseline CMD --candidate CMD`), each
pair with this budget: what a CI does that checks out both states of a program.

`--real-time` gives the trainings a core before everything else (chrt -f 1, as root): for a machine that others use.
`--keep FOLDER` goes on with the trainings that are there, and leaves them. Targets: of twenty identical pairs at most
one fails, of twenty regressed ones at least nineteen.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FULLBORE = Path(os.environ.get("FULLBORE", ROOT / "build/release/fullbore"))
TRAINING = ROOT / "bench/traceml_peer/training.py"
CONDITION = "samples_per_s < -3%"
LEAST_POINTS = 3  # of TraceML
WIDTH = 1200  # of the model: steps of about 10 ms on a core of 2023
CONDITION_HOLDS = 3  # exit statuses of fullbore compare
COMPARED = 0
GROUP = 8  # starts
MOST_FALSE = 1 / 20
LEAST_SEEN = 19 / 20
KINDS = ("same", "slower")


class Trainings:
    """Trains in a folder, each time under a name."""

    def __init__(self, folder: Path, given: argparse.Namespace) -> None:
        self.folder, self.given = folder, given

    def train(self, name: str, slower: float) -> None:
        for left in (self.folder / "runs").glob(f"{name}.*"):  # by a training that was ended
            left.unlink() if left.is_file() else shutil.rmtree(left)
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

    def fails(self, *compared: str) -> bool:
        """Recordings, or the options of commands."""
        command = [FULLBORE, "compare", "-o", "runs", *compared, "--fail-if", CONDITION]
        done = subprocess.run([str(part) for part in command], cwd=self.folder, capture_output=True, text=True)
        if done.returncode not in (COMPARED, CONDITION_HOLDS):
            sys.exit(f"{compared} could not be compared:\n{done.stderr}")
        return done.returncode == CONDITION_HOLDS

    def fails_in_turns(self, kind: str) -> bool:
        def trains(slower: float) -> str:
            own = ["--width", WIDTH, "--seconds", 3600, "--clock", "clock.json", "--slower", slower]
            return "OMP_NUM_THREADS=1 " + shlex.join(str(word) for word in [sys.executable, TRAINING, *own])

        commands = ["--baseline", trains(0), "--candidate", trains(self.given.planted if kind == "slower" else 0)]
        return self.fails(*commands, "--budget", self.given.in_turns)

    def traceml_fails(self, first: str, second: str) -> bool:
        summaries = [next((self.folder / "logs" / name).rglob("final_summary.json")) for name in (first, second)]
        output = self.folder / f"{first}-{second}"
        command = [sys.executable, self.given.traceml / "bin/traceml", "compare", *summaries, "--output", output]
        command += ["--max-step-time-regression-pct", str(LEAST_POINTS)]
        environment = {**os.environ, "PYTHONPATH": str(self.given.traceml)}
        subprocess.run([str(part) for part in command], env=environment, capture_output=True)
        return json.loads(output.with_suffix(".json").read_text())["ci_policy"]["pct_change"] > LEAST_POINTS


def order_of(given: argparse.Namespace) -> list[tuple[str, float]]:
    """The trainings by name, and how much slower each is made."""
    order = [(f"base{i}", 0.0) for i in range(given.starts)]
    for i in range(given.pairs):
        order += [(f"same{i}", 0.0), (f"slower{i}", given.planted)]
    random.Random(given.seed).shuffle(order)
    return order


def groups_of(given: argparse.Namespace, kind: str, number: int) -> tuple[list[str], list[str]]:
    """Starts before and after, of which none is in both groups; the same ones may be drawn for another number."""
    chance = random.Random(f"{given.seed} {kind} {number}")
    unchanged = [f"base{i}" for i in range(given.starts)] + [f"same{i}" for i in range(given.pairs)]
    chance.shuffle(unchanged)
    after = unchanged[GROUP:] if kind == "same" else [f"slower{i}" for i in range(given.pairs)]
    return unchanged[:GROUP], chance.sample(after, GROUP)


def judged(trainings: Trainings, given: argparse.Namespace, kind: str, number: int) -> dict[str, bool]:
    """Who says that this one is slower."""
    new, starts = f"{kind}{number}", [f"base{i}" for i in range(given.starts)]
    one = starts[number % given.starts]
    before, after = groups_of(given, kind, number)
    says = {
        "A B": trainings.fails(one, new),
        "--new": trainings.fails(*starts, "--new", new),
        f"{GROUP} --new {GROUP}": trainings.fails(*before, "--new", *after),
    }
    if given.traceml:
        says["TraceML"] = trainings.traceml_fails(one, new)
    return says


def of_recordings(trainings: Trainings, given: argparse.Namespace) -> dict[str, list[dict[str, bool]]]:
    for name, slower in order_of(given):
        if not (trainings.folder / f"{name}.json").exists():
            trainings.train(name, slower)
            print(f"trained {name}", flush=True)
    return {kind: [judged(trainings, given, kind, i) for i in range(given.pairs)] for kind in KINDS}


def of_commands(trainings: Trainings, given: argparse.Namespace) -> dict[str, list[dict[str, bool]]]:
    rounds: dict[str, list[dict[str, bool]]] = {kind: [] for kind in KINDS}
    for i in range(given.pairs):
        for kind in KINDS:
            begin = time.monotonic()
            rounds[kind].append({"in turns": trainings.fails_in_turns(kind)})
            took = time.monotonic() - begin
            print(f"{kind}{i}: {'fails' if rounds[kind][-1]['in turns'] else 'passes'} after {took:.0f} s", flush=True)
    return rounds


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--traceml", type=Path, help="the folder that it was installed into")
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--starts", type=int, default=7, help="of the baseline")
    parser.add_argument("--seconds", type=float, default=10, help="of each training")
    parser.add_argument("--planted", type=float, default=0.06)
    parser.add_argument("--seed", type=int, default=1, help="of the order")
    parser.add_argument("--in-turns", metavar="BUDGET", help="compares commands instead")
    parser.add_argument("--real-time", action="store_true")
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = given.keep or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        trainings = Trainings(folder.resolve(), given)
        rounds = of_commands(trainings, given) if given.in_turns else of_recordings(trainings, given)
    counts = {how: {kind: sum(each[how] for each in rounds[kind]) for kind in rounds} for how in rounds["same"][0]}
    for how, failed in counts.items():
        print(f"{how}: fails {failed['same']} of {given.pairs} identical pairs", end=", ")
        print(f"{failed['slower']} of {given.pairs} with a regression of {given.planted:.0%}")
    if given.json:
        given.json.write_text(json.dumps({"counts": counts, "rounds": rounds}, indent=2))
    ours = counts["in turns" if given.in_turns else f"{GROUP} --new {GROUP}"]
    return int(ours["same"] > MOST_FALSE * given.pairs or ours["slower"] < LEAST_SEEN * given.pairs)


if __name__ == "__main__":
    sys.exit(main())
