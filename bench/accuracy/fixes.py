"""Does the fix gain what was predicted? Each planted case runs as it is under fullbore, then without fullbore but with
the change that the report recommends: A B A B, a fixed number of rounds, and the medians are compared.

    .venv/bin/python bench/accuracy/fixes.py [--rounds 5] [CASE...]

The predicted and the measured step time are minutes apart, so this needs a machine with nothing else running. It prints
one row per case and always all rounds; nothing is repeated because it looked bad.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "planted"))
from planted_case import SINCE, Case, Laboratory, all_cases  # noqa: E402


@dataclass
class Round:
    """Step times in seconds: predicted for the fixed program, and then measured by that program's own clock."""

    expected: float
    low: float
    high: float
    measured: float


def run_round(case: Case, laboratory: Laboratory) -> Round | str:
    """A round, or why the report's advice could not be taken."""
    before = laboratory.run(case)
    first = before.first
    if f"{first['id']} {first.get('cause', '')}".strip() != case["EXPECT"]:
        return f"named {first['id']} {first.get('cause', '')}"
    after = laboratory.run(case, *before.fix(case["FIX"]), recorded=False)
    speedup = first["speedup"]
    return Round(
        expected=before.step_s / speedup["expected"],
        low=before.step_s / speedup["high"],
        high=before.step_s / speedup["low"],
        measured=after.truth.mean_step_s(SINCE),
    )


def row(case: Case, rounds: list[Round | str]) -> str:
    judged = [each for each in rounds if isinstance(each, Round)]
    missed = len(rounds) - len(judged)
    if not judged:
        return f"{case.name:18} the first finding was never the planted cause: {rounds[0]}"
    expected, low, high, measured = (
        median(getattr(each, name) for each in judged) for name in ("expected", "low", "high", "measured")
    )
    kept = "in range" if low <= measured <= high else "OUT OF RANGE"
    singles = " ".join(f"{100 * (each.measured / each.expected - 1):+.0f}" for each in judged)
    return (
        f"{case.name:18} expected {1e3 * expected:6.1f} ms [{1e3 * low:6.1f}, {1e3 * high:6.1f}]  "
        f"measured {1e3 * measured:6.1f} ms  error {100 * (measured / expected - 1):+4.0f} %  {kept}  "
        f"(rounds, %: {singles}{f'; {missed} named another cause' if missed else ''})"
    )


def main() -> int:
    cases = {case.name: case for case in all_cases() if case["FIX"] and not case.missing()}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=", ".join(cases))
    arguments = parser.parse_args()
    if unknown := set(arguments.cases) - set(cases):
        parser.error(f"no such case: {', '.join(sorted(unknown))}; there are {', '.join(cases)}")
    if arguments.rounds < 1:
        parser.error(f"--rounds {arguments.rounds}: at least one")
    with tempfile.TemporaryDirectory(prefix="fullbore-accuracy-") as scratch:
        photos = Path(scratch) / "photos"
        maker = ROOT / "examples" / "make_photos.py"
        subprocess.run([sys.executable, maker, photos, "--count", "48"], check=True, stdout=subprocess.DEVNULL)
        laboratory = Laboratory(photos, Path(scratch))
        for name in arguments.cases or cases:
            print(row(cases[name], [run_round(cases[name], laboratory) for _ in range(arguments.rounds)]), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
