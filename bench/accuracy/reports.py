#!/usr/bin/env python3
"""Does the first finding name the cause that public reports of slow trainings found, and does the cure bring what is
promised? The programs of reports/ are such reports written anew, each with its source, its cause and its cure
(`--fixed`). Each is recorded once, then runs as it is and cured in turns, by its own clock. A quiet machine, some ten
minutes; a program whose modules are missing is left out.

    bench/accuracy/reports.py [NAME ...] [--seconds 10] [--rounds 2] [--json FILE]

Prints a row for each; ends with 1 where less than four fifths of the first findings are right: they name the cause, or
promise nothing where the cure gains less than 5 %.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from both.findings import findings_of, names

ROOT = Path(__file__).resolve().parents[2]
FULLBORE = Path(os.environ.get("FULLBORE", ROOT / "build/release/fullbore"))
PROGRAMS = Path(__file__).with_name("reports")
RIGHT = 0.8
NO_GAIN = 1.05

# What names the cause, as "id cause". Of `iloc`, the first advice takes the slow rows out of the training's way; of
# `watch`, it says how often the hooks read everything, and on which lines; of `h5chunk`, its advice is about chunks.
EXPECTED = {
    "embedding": ("needless-work dense-gradient",),
    "frozen": ("frozen-network unused-gradients",),
    "rlthreads": ("thread-oversubscription*",),
    "randperm": ("input-bound sampler",),
    "watch": ("unstable-steps periodic",),
    "float64": ("needless-work double-precision",),
    "h5chunk": ("input-bound hand-over", "input-bound too-few-workers"),
    "tensords": ("input-bound slices",),
    "spawnworkers": ("input-bound epoch-start",),
    "iloc": ("input-bound no-workers", "input-bound slices"),
    "ddpaccum": ("comm-bound each-micro-batch",),
    "fsdpaccum": ("comm-bound each-micro-batch",),
    "cow": ("memory-growth*",),
}


@dataclass(frozen=True)
class Program:
    name: str

    @property
    def script(self) -> Path:
        return PROGRAMS / f"{self.name}.py"

    def command(self, seconds: float, *more: str) -> list[str]:
        launch = ["-m", "torch.distributed.run", "--nproc-per-node", "2"] if "torchrun" in self.about() else []
        return [sys.executable, *launch, str(self.script), "--seconds", str(seconds), *more]

    def about(self) -> str:
        return ast.get_docstring(ast.parse(self.script.read_text())) or ""

    def cause(self) -> str:
        return " ".join(re.search(r"Cause: (.*?)\nFix:", self.about(), re.DOTALL)[1].split())

    def lacks(self) -> list[str]:
        imports = [each for each in ast.walk(ast.parse(self.script.read_text())) if isinstance(each, ast.Import)]
        wanted = {alias.name.partition(".")[0] for each in imports for alias in each.names}
        test = "import importlib.util, sys; sys.exit(importlib.util.find_spec(sys.argv[1]) is None)"
        return [each for each in sorted(wanted) if subprocess.run([sys.executable, "-c", test, each]).returncode != 0]


def run(command: list[str], folder: Path) -> str:
    left_out = ("FULLBORE_", "OMP_", "MKL_")
    environment = {k: v for k, v in os.environ.items() if not k.startswith(left_out)}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"reports.py: {' '.join(command)}: {done.stderr[-2000:]}")
    return done.stdout


def rate(command: list[str], folder: Path) -> float:
    return float(re.findall(r"^RATE (\S+)", run(command, folder), re.MULTILINE)[-1])


def examined(program: Program, folder: Path, flags: argparse.Namespace) -> dict:
    report = folder / f"{program.name}.json"
    watch = [str(FULLBORE), "run", "-o", str(folder / "runs"), "--quiet", "--json", str(report), "--"]
    run([*watch, *program.command(flags.seconds)], folder)
    findings = findings_of(json.loads(report.read_text()))
    as_is, cured = [], []
    for _ in range(flags.rounds):
        as_is.append(rate(program.command(flags.seconds), folder))
        cured.append(rate(program.command(flags.seconds, "--fixed"), folder))
    place = next((i for i, each in enumerate(findings) if names(each, EXPECTED[program.name])), None)
    return {
        "program": program.name,
        "cause": program.cause(),
        "findings": findings,
        "place": place,
        "as_is": as_is,
        "cured": cured,
        "gain": median(cured) / median(as_is),
    }


def is_right(result: dict) -> bool:
    first = result["findings"][0]
    return result["place"] == 0 or ("speedup" not in first and result["gain"] < NO_GAIN)


def row(result: dict) -> str:
    first = result["findings"][0]
    said = f"{first['id']} {first.get('cause', '')}".strip()
    promised = first.get("speedup")
    span = f"{promised['low']:.2f}x to {promised['high']:.2f}x" if promised else "nothing"
    where = {0: "first", None: "no"}.get(result["place"], f"number {(result['place'] or 0) + 1}")
    return f"| {result['program']} | {said} | {where} | {span} | {result['gain']:.2f}x |"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(EXPECTED))
    parser.add_argument("--seconds", type=float, default=10, help="of each run (10)")
    parser.add_argument("--rounds", type=int, default=2, help="of as it is and cured (2)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="a line for each program")
    flags = parser.parse_args()
    if unknown := [name for name in flags.names if name not in EXPECTED]:
        parser.error(f"no program '{unknown[0]}'\nhint: {', '.join(EXPECTED)}")
    print(
        "| program | first finding | names the cause | promised | measured, cured |\n|---|---|---|---|---|", flush=True
    )
    results = []
    with tempfile.TemporaryDirectory(prefix="fullbore-reports-") as scratch:
        for program in map(Program, flags.names or EXPECTED):
            if lacking := program.lacks():
                print(f"left out: {program.name} needs {', '.join(lacking)}", file=sys.stderr)
                continue
            results.append(examined(program, Path(scratch), flags))
            print(row(results[-1]), flush=True)
            if flags.json:
                with open(flags.json, "a") as file:
                    file.write(json.dumps(results[-1]) + "\n")
    right = sum(map(is_right, results))
    print(f"\n{right} of {len(results)} are right")
    return 0 if results and right >= RIGHT * len(results) else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
