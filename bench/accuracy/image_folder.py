#!/usr/bin/env python3
"""Is `--fast-data` the first advice to a plain ImageFolder script, and does it bring what is predicted? An unmodified
script (image_folder/training.py), photos of 500x375 and of 2000x1500: recorded once, then as it is and with the advice
in turns, by the script's own clock. Needs a Python with torch and torchvision, and a quiet machine for four minutes.

    bench/accuracy/image_folder.py [--python /usr/bin/python3] [--seconds 16] [--rounds 3] [--json FILE]
                                   [--sizes 500x375] [--script-arguments "--workers 2 --batch-size 64 --size 160"]

Prints a row for each size. Target: the predicted throughput within 15 % of the measured one.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[2]
FULLBORE = ROOT / "build/release/fullbore"
TRAINING = ROOT / "bench/accuracy/image_folder/training.py"
SIZES = {"500x375": "small", "2000x1500": "large"}  # as bench/loader/make_data.py names their folders
WITHIN = 0.15


class Trial:
    def __init__(self, photos: Path, folder: Path, flags: argparse.Namespace) -> None:
        self.clock = folder / "clock.txt"
        self.report = folder / "report.json"
        self.command = [flags.python, TRAINING, photos, flags.seconds, self.clock, *shlex.split(flags.script_arguments)]
        self.runs = folder / "runs"

    def rate(self, *before: object) -> float:
        """Images per second of the script, started by `before`."""
        self.clock.unlink(missing_ok=True)
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("FULLBORE_", "PYTHON"))}
        command = [str(word) for word in (*before, *self.command)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)}: {done.stderr[-2000:]}")
        return float(self.clock.read_text())

    def record(self) -> dict:
        self.rate(FULLBORE, "run", "-o", self.runs, "--quiet", "--json", self.report, "--")
        return json.loads(self.report.read_text())["findings"][0]

    def with_the_advice(self) -> float:
        return self.rate(FULLBORE, "run", "-o", self.runs, "--quiet", "--fast-data", "--")


def examined(photos: Path, folder: Path, flags: argparse.Namespace) -> dict:
    trial = Trial(photos, folder, flags)
    first = trial.record()
    as_is, advised = [], []
    for _ in range(flags.rounds):
        as_is.append(trial.rate())
        advised.append(trial.with_the_advice())
    return {"said": first, "as_is": as_is, "advised": advised, "gain": median(advised) / median(as_is)}


def row(size: str, result: dict) -> tuple[str, bool]:
    first, gain = result["said"], result["gain"]
    promised = first.get("speedup")
    is_ours = "--fast-data" in first.get("change", "")
    if not promised:
        return f"| {size} | {first['title']} | | {gain:.2f}x | |", False
    off = promised["expected"] / gain - 1
    said = "`--fast-data`" if is_ours else first.get("change", "")
    predicted = f"{promised['expected']:.2f}x ({promised['low']:.2f}x to {promised['high']:.2f}x)"
    rates = f"{median(result['as_is']):.0f} to {median(result['advised']):.0f} images/s, {gain:.2f}x"
    return f"| {size} | {said} | {predicted} | {rates} | {100 * off:+.0f} % |", is_ours and abs(off) <= WITHIN


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default="/usr/bin/python3", help="with torch and torchvision (%(default)s)")
    parser.add_argument("--seconds", type=float, default=16, help="of training in each run (%(default)s)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=list(SIZES))
    parser.add_argument("--script-arguments", default="", metavar="TEXT", help="of image_folder/training.py")
    parser.add_argument("--json", type=Path)
    flags = parser.parse_args()
    results, fine = {}, []
    with tempfile.TemporaryDirectory(prefix="fullbore-folder-") as scratch:
        folder = Path(scratch)
        maker = [sys.executable, ROOT / "bench/loader/make_data.py", folder, "--count", 600, "--large", 120]
        subprocess.run([str(word) for word in [*maker, "--texts", 1]], check=True, stdout=subprocess.DEVNULL)
        print("| photos | first advice | predicted | measured | off by |\n|---|---|---|---|---|")
        for size in flags.sizes:
            results[size] = examined(folder / SIZES[size], folder, flags)
            line, is_fine = row(size, results[size])
            print(line, flush=True)
            fine.append(is_fine)
    if flags.json:
        flags.json.write_text(json.dumps(results, indent=1) + "\n")
    return 0 if all(fine) else 1


if __name__ == "__main__":
    sys.exit(main())
