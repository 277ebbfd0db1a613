"""Prints what `explain --pid` says of each planted case beside what `run` says: first findings, and the largest
difference of a share. No measurement of speed; on a quiet machine, some 40 minutes.

    .venv/bin/python bench/accuracy/attached.py [CASE...]
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests/planted"))
from planted_case import Laboratory, all_cases  # noqa: E402

SECONDS, STEPS = 20, "240"  # what --pid, and what run sees: about as long
WITHIN = 0.07


def first(report: dict) -> str:
    finding = report["findings"][0] if report["findings"] else {"id": "none"}
    return f"{finding['id']} {finding.get('cause', '')}".strip()


def shares(report: dict) -> dict[str, float]:
    return report.get("step_time", {}).get("shares", {})


def row(case: str, run: dict, attached: dict) -> tuple[str, bool, bool]:
    """A line of the table, and whether the first findings and the shares agree."""
    ours, theirs = shares(run), shares(attached)
    share = max({*ours, *theirs}, key=lambda name: abs(ours.get(name, 0) - theirs.get(name, 0)), default="")
    off = abs(ours.get(share, 0) - theirs.get(share, 0))
    points = attached["window"].get("sampled", {}).get("points", 1)
    line = f"| {case} | {first(run)} | {first(attached)} | {share} {100 * off:.1f} | ±{100 * points:.1f} |"
    return line, first(run).split()[0] == first(attached).split()[0], off <= WITHIN


def main() -> None:
    wanted = sys.argv[1:]
    same, within = [], []
    print("| case | `run` | `--pid` | largest difference, points | sampled |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as scratch:
        photos = Path(scratch) / "photos"
        maker = ROOT / "examples/make_photos.py"
        subprocess.run([sys.executable, maker, photos, "--count", "48"], check=True, capture_output=True)
        laboratory = Laboratory(photos, Path(scratch))
        for case in all_cases():
            if case.missing() or (wanted and case.name not in wanted):
                continue
            if not wanted and {"jax", "python-keras", "python-tensorflow"} & set(case["NEEDS"].split()):
                continue  # what --pid cannot see: docs/report.md
            try:
                line, findings_agree, shares_agree = row(
                    case.name, laboratory.run(case, "--steps", STEPS).report, laboratory.attach(case, SECONDS)
                )
            except (AssertionError, subprocess.TimeoutExpired) as error:
                print(f"| {case.name} | {str(error).splitlines()[0][:80]} |", flush=True)
                continue
            print(line, flush=True)
            same.append(findings_agree)
            within.append(shares_agree)
    print(f"\nthe same first finding in {sum(same)} of {len(same)}; all shares within 7 points in {sum(within)}")


if __name__ == "__main__":
    main()
