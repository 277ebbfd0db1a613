#!/usr/bin/env python3
"""What scripts/demo.sh reads out of the JSON reports.

demo_report.py workers BEFORE      the number of workers that the verdict recommends, or nothing
demo_report.py source REPORT       the run file that the report is about
demo_report.py table BEFORE AFTER  prediction and measurement side by side
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path


def recommended_workers(report: dict) -> int | None:
    match = re.search(r"num_workers=(\d+)", report["findings"][0].get("change", ""))
    return int(match.group(1)) if match else None


def judge(measured: float, low: float, high: float) -> str:
    if measured < low:
        return "slower than predicted"
    return "within the predicted range" if measured <= high else "faster than predicted"


def table(before: dict, after: dict) -> str:
    def row(name: str, rate: str, step_ms: str, speedup: str) -> str:
        return f"  {name:26}{rate:>16}{step_ms:>18}{speedup:>20}".rstrip()

    def milliseconds(step_ns: float) -> str:
        return f"{step_ns / 1e6:.0f} ms"

    rate = before["throughput"]["samples_per_s"]
    step = before["step_time"]["mean_ns"]
    predicted = before["findings"][0].get("speedup", {"low": 1, "high": 1})  # absent: no gain is predicted
    low, high = predicted["low"], predicted["high"]
    measured = after["throughput"]["samples_per_s"] / rate
    return "\n".join(
        [
            row("", "images/s", "step", "speed-up"),
            row("before: num_workers=0", f"{rate:.0f}", milliseconds(step), ""),
            row(
                f"predicted: num_workers={recommended_workers(before)}",
                f"{rate * low:.0f} to {rate * high:.0f}",
                f"{step / high / 1e6:.0f} to {milliseconds(step / low)}",
                f"{low:.2f}x to {high:.2f}x",
            ),
            row(
                "measured",
                f"{after['throughput']['samples_per_s']:.0f}",
                milliseconds(after["step_time"]["mean_ns"]),
                f"{measured:.2f}x",
            ),
            "",
            f"  measured is {judge(measured, low, high)}",
        ]
    )


def main() -> None:
    what, *paths = sys.argv[1:]
    reports = [json.loads(Path(path).read_text()) for path in paths]
    if what == "workers":
        workers = recommended_workers(reports[0])
        print("" if workers is None else workers)
    elif what == "source":
        print(reports[0]["source"])
    elif what == "table":
        print("\n" + table(*reports) + "\n")
    else:
        sys.exit(f"demo_report.py: unknown '{what}'; it takes workers, source or table")


if __name__ == "__main__":
    main()
