#!/usr/bin/env python3
"""How far can the verdicts be trusted? An exam on random training programs, run here or simulated on devices.

    exam.py run [--part 1/10] [--cases N] [--seeds odd] [--conditions as-is,one-core]
    exam.py device [--seeds odd] [--pairs N]
    exam.py second [--seeds odd] [--pairs N]
    exam.py unfit [--seeds odd] [--pairs N]
    exam.py language [NAME ...]
    exam.py summary [--write docs/accuracy.md]
    exam.py show SEED             the program of a seed, and what is planted in it

`run` records each program under fullbore, takes the advice of the first finding, and measures what it gains by
`fullbore compare`: the program as it is and the changed one in turns. (That has an exam of its own, bench/proof.py.)
Every finished case is one line in the results file; Ctrl-C at any time, and the same command continues. On a machine
that does anything else, intervals are wide.

`device` simulates programs on GPUs before and after a change, lets fullbore explain the recording of the first, and
compares what it says with the second. That takes minutes, needs no quiet machine, and continues in the same way.
`second` does so on a simulator by somebody who has read neither the first nor the predictions' code.
`unfit` spoils the recordings of simulated programs, and counts what is promised of them all the same.
`language` records programs that train language models, here, and runs each as it is and with its own cure, in turns.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import json
import os
import platform
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import device.plant
import device.refuse
import device.run
import device.summary
import language.run
import second.run
from both.tables import DEVICE_MARKS, read_results, write_into
from live.case import Case
from live.conditions import CONDITIONS, Condition, Unavailable, under
from live.examine import examine
from live.laboratory import FULLBORE, ROOT, Laboratory
from live.planted import planted
from live.programs import BUILDERS, generated
from live.summary import markdown

SEEDS = 6 * len(BUILDERS)  # three odd and three even programs of each kind
RESULTS = ROOT / ".fullbore" / "accuracy" / "results.jsonl"
DEVICE_RESULTS = RESULTS.with_name("device.jsonl")
SECOND_RESULTS = RESULTS.with_name("second.jsonl")
UNFIT_RESULTS = RESULTS.with_name("unfit.jsonl")
LANGUAGE_RESULTS = RESULTS.with_name("language.jsonl")
LANGUAGE_PYTHON = ROOT / "build/language/bin/python"
UNFIT_PROGRAMS = 120
ORDER = 20261122  # any number: the order of the cases, the same in every run


def all_cases(which: str, seeds: int) -> list[Case]:
    """In a fixed random order, so that every part of them, also of a run cut short, is a fair sample."""
    chosen = [generated(seed) for seed in range(seeds) if which == "both" or (seed % 2 == 1) == (which == "odd")]
    if which != "odd":
        chosen += planted()
    random.Random(ORDER).shuffle(chosen)
    return chosen


def part(cases: list[Case], text: str) -> list[Case]:
    number, of = (int(word) for word in text.split("/"))
    if not 1 <= number <= of:
        raise argparse.ArgumentTypeError(f"--part {text}: 1/10 to 10/10, for instance")
    return cases[number - 1 :: of]


def commit() -> str:
    said = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    return said.stdout.strip()


def machine() -> str:
    model = next((line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")), "")
    versions = f"torch {metadata.version('torch')}, Python {platform.python_version()}"
    return f"{os.cpu_count()} cores, {model.partition(':')[2].strip() or platform.machine()}, {versions}"


def conditions_of(names: str) -> list[Condition]:
    """Those of the names that this machine can provide; says why it cannot provide the others."""
    chosen = []
    for name in names.split(","):
        if name not in CONDITIONS:
            sys.exit(f"exam.py: no condition '{name}'\nhint: {', '.join(CONDITIONS)}")
        try:
            with under(CONDITIONS[name]):
                chosen.append(CONDITIONS[name])
        except Unavailable as why:
            print(f"left out: {why}", file=sys.stderr)
    return chosen


def run(arguments: argparse.Namespace) -> int:
    if not arguments.fullbore.exists():
        sys.exit(f"exam.py: no {arguments.fullbore}\nhint: make build")
    if arguments.only:
        by_name = {case.name: case for case in all_cases("both", 100 * SEEDS if arguments.only else SEEDS)}
        cases = [by_name[name] for name in arguments.only]
    else:
        cases = part(all_cases(arguments.seeds, arguments.programs), arguments.part)[: arguments.cases]
    wanted = [(case, condition) for condition in conditions_of(arguments.conditions) for case in cases]
    if arguments.again:
        measured = {(result["case"], result["condition"]) for result in read_results(arguments.again)}
        wanted = [each for each in wanted if (each[0].name, each[1].measured_under.name) in measured]
    finished = {(result["case"], result["condition"]) for result in read_results(arguments.results)}
    todo = [each for each in wanted if (each[0].name, each[1].name) not in finished]
    print(f"{len(todo)} cases, {len(wanted) - len(todo)} finished before; results in {arguments.results}", flush=True)
    arguments.results.parent.mkdir(parents=True, exist_ok=True)
    try:
        with tempfile.TemporaryDirectory(prefix="fullbore-exam-") as scratch:
            laboratory = Laboratory(
                Path(scratch),
                arguments.seconds,
                arguments.fullbore,
                arguments.python,
                arguments.budget,
                recordings=arguments.recordings or (arguments.again or arguments.results).with_suffix(".runs"),
            )
            laboratory.make_photos()
            examine_all(todo, laboratory, arguments)
    except KeyboardInterrupt:
        print("\nstopped; the same command continues", file=sys.stderr)
        return 130
    print(f"\n{markdown(read_results(arguments.results), 'both')}")
    return 0


def examine_all(todo: list[tuple[Case, Condition]], laboratory: Laboratory, arguments: argparse.Namespace) -> None:
    begin, origin = time.monotonic(), {"commit": commit(), "machine": machine()}
    measured = read_results(arguments.again) if arguments.again else []
    before = {(result["case"], result["condition"]): result for result in measured}
    for number, (case, condition) in enumerate(todo):
        said = before.get((case.name, condition.name))
        known = before.get((case.name, condition.measured_under.name))
        with turn(arguments.lock):
            result = {**examine(case, condition, laboratory, said, known), **origin}
        with open(arguments.results, "a") as file:
            file.write(json.dumps(result) + "\n")
        left_s = (time.monotonic() - begin) / (number + 1) * (len(todo) - number - 1)
        print(f"{number + 1}/{len(todo)}  {line_of(result)}  [{left_s / 60:.0f} min left]", flush=True)


@contextlib.contextmanager
def turn(lock: Path | None) -> Iterator[None]:
    """Holds the lock while a case is measured: other work on this machine takes turns (flock LOCK make build)."""
    with contextlib.ExitStack() as stack:
        if lock:
            fcntl.flock(stack.enter_context(open(lock, "w")), fcntl.LOCK_EX)
        yield


def line_of(result: dict) -> str:
    head = f"{result['case']:>5} {result['condition']} {result['cause']}:"
    if "proofs" not in result:
        return f"{head} {result.get('skipped') or 'failed: ' + result['failed'].splitlines()[0][:100]}"
    first = result["findings"][0]
    gains = [f"{name} {gain_text(proof['gain'])}" for name, proof in result["proofs"].items()]
    promised = f" ({gain_text(first['speedup'])})" if "speedup" in first else ""
    return f"{head} said {first['id']} {first.get('cause', '')}{promised}, {', '.join(gains) or 'nothing to try'}"


def gain_text(gain: dict | None) -> str:
    return f"{gain['expected']:.2f}x {gain['low']:.2f} to {gain['high']:.2f}" if gain else "not known"


def summary(arguments: argparse.Namespace) -> int:
    live, simulated = read_results(arguments.results), read_results(arguments.device_results)
    if arguments.json:
        print(json.dumps({"device": device.summary.as_json(simulated, arguments.half)}))
        return 0
    texts = markdown(live, arguments.half), device.summary.markdown(simulated, arguments.half)
    if not arguments.write:
        print("\n\n".join(texts))
        return 0
    if live:
        write_into(arguments.write, texts[0])
    if simulated:
        write_into(arguments.write, texts[1], *DEVICE_MARKS)
    return 0


def on_device(arguments: argparse.Namespace) -> int:
    return device.run.run(arguments, commit())


def on_second(arguments: argparse.Namespace) -> int:
    return second.run.run(arguments, commit())


def on_unfit(arguments: argparse.Namespace) -> int:
    return device.refuse.run(arguments, commit())


def on_language(arguments: argparse.Namespace) -> int:
    return language.run.run(arguments, {"commit": commit(), "machine": machine()})


def show(arguments: argparse.Namespace) -> int:
    if arguments.device:
        print(device.run.described(device.plant.generated(arguments.seed)))
        return 0
    case = generated(arguments.seed)
    print(f"# {case.cause}: {case.about}\n# started with {case.base or 'nothing'}, cured by {case.cure or 'nothing'}")
    print(f"# other changes: {case.changes or 'none'}\n\n{case.script}", end="")
    return 0


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    runs = commands.add_parser("run", help="examine the cases that are not in the results file yet")
    runs.add_argument("--part", default="1/1", metavar="K/N", help="the K-th of N equal parts (1/10: a tenth)")
    runs.add_argument("--cases", type=int, metavar="N", help="only the first N of them")
    runs.add_argument("--only", nargs="+", metavar="NAME", help="these: a seed, or planted-NAME")
    runs.add_argument("--seeds", choices=("odd", "even", "both"), default="odd", help="odd ones are never fitted to")
    runs.add_argument("--programs", type=int, default=SEEDS, metavar="N", help=f"seeds below N ({SEEDS})")
    runs.add_argument("--conditions", default="as-is", metavar="LIST", help=", ".join(CONDITIONS))
    runs.add_argument("--seconds", type=float, default=10, help="of training that is recorded (10)")
    runs.add_argument("--budget", type=float, default=90, metavar="SECONDS", help="of each comparison (90)")
    runs.add_argument("--fullbore", type=Path, default=FULLBORE, help="the program to examine")
    runs.add_argument("--python", default=sys.executable, help="runs the programs (some need torchvision)")
    runs.add_argument("--results", type=Path, default=RESULTS)
    runs.add_argument("--recordings", type=Path, metavar="FOLDER", help="of run files (RESULTS with .runs)")
    runs.add_argument(
        "--again",
        type=Path,
        metavar="OLD",
        help="judge the recordings of these results anew, and measure only what is advised for the first time",
    )
    runs.add_argument("--lock", type=Path, metavar="FILE", help="take turns with others that lock this file (flock)")
    runs.set_defaults(command=run)
    simulates = commands.add_parser("device", help="examine simulated pairs that are not in the results file yet")
    simulates.add_argument("--seeds", choices=("odd", "even", "both"), default="odd", help="odd: never fitted to")
    simulates.add_argument("--programs", type=int, default=device.run.SEEDS, metavar="N", help="seeds below N (600)")
    simulates.add_argument("--pairs", type=int, metavar="N", help="only the first N of them, a fair sample")
    simulates.add_argument("--only", nargs="+", type=int, metavar="SEED", help="these")
    simulates.add_argument("--keep", type=Path, metavar="FOLDER", help="leave the traces there")
    simulates.add_argument("--json", action="store_true", help="the summary as one JSON object")
    simulates.add_argument("--fullbore", type=Path, default=FULLBORE, help="the program to examine")
    simulates.add_argument("--results", type=Path, default=DEVICE_RESULTS)
    simulates.set_defaults(command=on_device)

    witnesses = commands.add_parser("second", help="examine pairs of the second simulator, as `device`")
    witnesses.add_argument("--seeds", choices=("odd", "even", "both"), default="odd", help="odd: never fitted to")
    witnesses.add_argument("--pairs", type=int, metavar="N", help="only the first N of them, a fair sample")
    witnesses.add_argument("--keep", type=Path, metavar="FOLDER", help="leave the traces there")
    witnesses.add_argument("--fullbore", type=Path, default=FULLBORE, help="the program to examine")
    witnesses.add_argument("--results", type=Path, default=SECOND_RESULTS)
    witnesses.set_defaults(command=on_second)

    spoils = commands.add_parser("unfit", help="examine spoilt recordings that are not in the results file yet")
    spoils.add_argument("--seeds", choices=("odd", "even", "both"), default="odd", help="odd: never fitted to")
    spoils.add_argument("--programs", type=int, default=device.run.SEEDS, metavar="N", help="seeds below N (600)")
    spoils.add_argument("--pairs", type=int, default=UNFIT_PROGRAMS, metavar="N", help="of N programs (120)")
    spoils.add_argument("--keep", type=Path, metavar="FOLDER", help="leave the traces there")
    spoils.add_argument("--fullbore", type=Path, default=FULLBORE, help="the program to examine")
    spoils.add_argument("--results", type=Path, default=UNFIT_RESULTS)
    spoils.set_defaults(command=on_unfit)
    trains = commands.add_parser("language", help="examine the programs that train language models")
    trains.add_argument("names", nargs="*", metavar="NAME", help=", ".join(language.run.EXPECTED))
    trains.add_argument("--seconds", type=float, default=30, help="of training that is recorded (30)")
    trains.add_argument("--turns", type=float, default=15, metavar="SECONDS", help="as it is, and cured (15 each)")
    trains.add_argument("--first", action="store_true", help="before all others of this machine (chrt -r 1, as root)")
    trains.add_argument("--again", action="store_true", help="judge the recordings of the finished ones anew")
    trains.add_argument("--json", action="store_true", help="all results as one JSON object")
    trains.add_argument("--fullbore", type=Path, default=FULLBORE, help="the program to examine")
    trains.add_argument("--python", default=str(LANGUAGE_PYTHON), help="has Transformers, TRL (scripts/language.sh)")
    trains.add_argument("--results", type=Path, default=LANGUAGE_RESULTS)
    trains.set_defaults(command=on_language)
    tables = commands.add_parser("summary", help="the tables of docs/accuracy.md")
    tables.add_argument("--half", choices=("odd", "even", "both"), default="odd")
    tables.add_argument("--write", type=Path, metavar="PAGE", help="into this page, between its marks")
    tables.add_argument("--json", action="store_true", help="the figures of the simulated part as one JSON object")
    tables.add_argument("--results", type=Path, default=RESULTS)
    tables.add_argument("--device-results", type=Path, default=DEVICE_RESULTS)
    tables.set_defaults(command=summary)
    shows = commands.add_parser("show", help="the program of a seed")
    shows.add_argument("seed", type=int)
    shows.add_argument("--device", action="store_true", help="a simulated one")
    shows.set_defaults(command=show)
    return parser.parse_args()


if __name__ == "__main__":
    parsed = parse()
    sys.exit(parsed.command(parsed))
