"""How long one verdict over many machines takes, and how much memory: made runs (build/release/bench/write_nodes).

  bench/fleet/many_nodes.py [--machines 125] [--ranks 8] [--seconds 600] [--rounds 3]

Prints one JSON object: for `explain` of the folder, seconds and peak memory of each round, whether the slow machine is
named with its clock, and the same of a run without a slow machine, where none may be named.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import time

BUILD = pathlib.Path(__file__).resolve().parents[2] / "build" / "release"


def explained(folder: pathlib.Path, report: pathlib.Path) -> tuple[float, float, dict]:
    """Seconds, megabytes at the peak, and the report."""
    begun = time.monotonic()
    command = [BUILD / "fullbore", "explain", folder, "--json", report, "--force", "--quiet"]
    process = subprocess.Popen([os.fspath(word) for word in command])
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        raise SystemExit(f"many_nodes: explain ended with status {status}")
    return time.monotonic() - begun, usage.ru_maxrss / 1024, json.loads(report.read_text())


def straggler_in(report: dict) -> dict | None:
    return next((each for each in report["findings"] if each["id"] == "straggler"), None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--machines", type=int, default=125)
    parser.add_argument("--ranks", type=int, default=8, help="of each machine")
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    said: dict = {"machines": asked.machines, "ranks": asked.machines * asked.ranks, "seconds_recorded": asked.seconds}
    with tempfile.TemporaryDirectory() as directory:
        report = pathlib.Path(directory) / "report.json"
        for what, slow in (("one_slow", asked.machines // 3), ("none_slow", -1)):
            numbers = [str(each) for each in (asked.machines, asked.ranks, asked.seconds, slow)]
            folder = subprocess.check_output([BUILD / "bench" / "write_nodes", directory, *numbers], text=True).strip()
            rounds = [explained(pathlib.Path(folder), report) for _ in range(asked.rounds)]
            found = straggler_in(rounds[-1][2])
            said[what] = {
                "bytes": sum(file.stat().st_size for file in pathlib.Path(folder).iterdir()),
                "s": [round(seconds, 2) for seconds, _, _ in rounds],
                "peak_mb": [round(megabytes) for _, megabytes, _ in rounds],
                "ranks_read": len(rounds[-1][2]["ranks"]),
                "named": found["title"] if found else None,
            }
            shutil.rmtree(folder)
    print(json.dumps(said, indent=2))


if __name__ == "__main__":
    main()
