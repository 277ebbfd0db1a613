#!/usr/bin/env python3
"""Does the first finding name the cause that public reports of slow trainings found, and does the cure bring what is
promised? The programs of reports/ are such reports written anew, each with its source, its cause and its cure
(`--fixed`). Each is recorded once, then runs as it is and cured, by its own clock, in turns of a second. Some ten
minutes; a program whose modules are missing is left out.

    bench/accuracy/reports.py [NAME ...] [--seconds 20] [--json FILE]

Prints a row for each; ends with 1 where less than four fifths of the first findings are right: they name the cause, or
promise nothing where the cure gains less than 5 %.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path

from both.cured import HEAD, Place, Program, examined, is_right, row

ROOT = Path(__file__).resolve().parents[2]
FULLBORE = Path(os.environ.get("FULLBORE", ROOT / "build/release/fullbore"))
PROGRAMS = Path(__file__).with_name("reports")
RIGHT = 0.8

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


def program_of(name: str) -> Program:
    return Program(PROGRAMS / f"{name}.py", EXPECTED[name], sys.executable)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(EXPECTED))
    parser.add_argument("--seconds", type=float, default=20, help="that are recorded, and of each sum of turns (20)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="a line for each program")
    flags = parser.parse_args()
    if unknown := [name for name in flags.names if name not in EXPECTED]:
        parser.error(f"no program '{unknown[0]}'\nhint: {', '.join(EXPECTED)}")
    print(HEAD, flush=True)
    results = []
    with tempfile.TemporaryDirectory(prefix="fullbore-reports-") as scratch:
        place = Place(FULLBORE, Path(scratch), flags.seconds, flags.seconds, Path(scratch) / "runs")
        for name in flags.names or EXPECTED:
            program = program_of(name)
            if lacking := program.lacks():
                print(f"left out: {name} needs {', '.join(lacking)}", file=sys.stderr)
                continue
            results.append(examined(program, place))
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
