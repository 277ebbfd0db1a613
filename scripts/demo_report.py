#!/usr/bin/env python3
"""What scripts/demo.sh reads out of the JSON reports.

demo_report.py workers REPORT      the number of workers that the verdict recommends, or nothing
demo_report.py table REPORT PROOF  what it predicts, and what `fullbore compare` measured
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path


def recommended_workers(report: dict) -> int | None:
    match = re.search(r"num_workers=(\d+)", report["findings"][0].get("change", ""))
    return int(match.group(1)) if match else None


def span(gain: dict | None) -> str:
    return f"{gain['expected']:.2f}x ({gain['low']:.2f} to {gain['high']:.2f})" if gain else "not known"


def judge(proof: dict, predicted: dict) -> str:
    """What the proof, as `fullbore compare --json` writes it, says of a predicted gain."""
    measured = proof["gain"]
    if measured is None:
        return "not proven: there was no time for two pairs"
    if measured["high"] < predicted["low"]:
        return "the measured gain is below the prediction"
    if measured["low"] > predicted["high"]:
        return "the measured gain is above the prediction"
    if proof["verdict"] == "not-proven":
        return "not proven: the measurements cannot tell the gain from none"
    if measured["low"] < predicted["low"] and measured["high"] > predicted["high"]:
        return "the measured gain does not refute the prediction, nor could it: its interval is wider"
    if predicted["low"] <= measured["expected"] <= predicted["high"]:
        return "the measured gain is within the predicted range: it held"
    return "the measured gain is outside the predicted range, by less than the measurement may be off"


def table(report: dict, proof: dict) -> str:
    def row(name: str, rate: str, speedup: str) -> str:
        return f"  {name:28}{rate:>16}{speedup:>28}".rstrip()

    rate = report["throughput"]["samples_per_s"]
    predicted = report["findings"][0].get("speedup", {"expected": 1, "low": 1, "high": 1})  # absent: none is predicted
    return "\n".join(
        [
            row("", "images/s", "speed-up"),
            row("recorded: num_workers=0", f"{rate:.0f}", ""),
            row(
                f"predicted: num_workers={recommended_workers(report)}",
                f"{rate * predicted['low']:.0f} to {rate * predicted['high']:.0f}",
                span(predicted),
            ),
            row("measured, num_workers=0", f"{proof['baseline']['rate'] or 0:.0f}", ""),
            row(
                f"measured, num_workers={recommended_workers(report)}",
                f"{proof['candidate']['rate'] or 0:.0f}",
                span(proof["gain"]),
            ),
            "",
            f"  {judge(proof, predicted)}",
        ]
    )


def main() -> None:
    what, *paths = sys.argv[1:]
    reports = [json.loads(Path(path).read_text()) for path in paths]
    if what == "workers":
        workers = recommended_workers(reports[0])
        print("" if workers is None else workers)
    elif what == "table":
        print("\n" + table(*reports) + "\n")
    else:
        sys.exit(f"demo_report.py: unknown '{what}'; it takes workers or table")


if __name__ == "__main__":
    main()
