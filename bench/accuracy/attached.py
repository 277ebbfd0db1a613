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

SECONDS = 20


def first(report: dict) -> str:
    finding = report["findings"][0] if report["findings"] else {"id": "none"}
    return f"{finding['id']} {finding.get('cause', '')}".strip()


def shares(report: dict) -> dict[str, float]:
    return report.get("step_time", {}).get("shares", {})


def main() -> None:
    wanted = sys.argv[1:]
    with tempfile.TemporaryDirectory() as scratch:
        photos = Path(scratch) / "photos"
        maker = ROOT / "examples/make_photos.py"
        subprocess.run([sys.executable, maker, photos, "--count", "48"], check=True, capture_output=True)
        laboratory = Laboratory(photos, Path(scratch))
        same = within = count = 0
        print(f"{'case':22}{'run':32}{'explain --pid':32}{'largest difference':>20}  sampled")
        for case in all_cases():
            if case.missing() or (wanted and case.name not in wanted):
                continue
            if not wanted and {"jax", "python-keras", "python-tensorflow"} & set(case["NEEDS"].split()):
                continue  # what --pid cannot see: docs/report.md
            try:
                run, attached = laboratory.run(case).report, laboratory.attach(case, SECONDS)
            except (AssertionError, subprocess.TimeoutExpired) as error:
                print(f"{case.name:22}{str(error).splitlines()[0][:80]}", flush=True)
                continue
            ours, theirs = shares(run), shares(attached)
            share = max({*ours, *theirs}, key=lambda name: abs(ours.get(name, 0) - theirs.get(name, 0)), default="")
            off = abs(ours.get(share, 0) - theirs.get(share, 0))
            points = attached["window"].get("sampled", {}).get("points", 1)
            count += 1
            same += first(run).split()[0] == first(attached).split()[0]
            within += off <= 0.07
            print(
                f"{case.name:22}{first(run):32}{first(attached):32}{share:>13} {100 * off:4.1f} %  "
                f"+-{100 * points:.1f}",
                flush=True,
            )
        print(f"\nthe same first finding in {same} of {count}; all shares within 7 points in {within} of {count}")


if __name__ == "__main__":
    main()
