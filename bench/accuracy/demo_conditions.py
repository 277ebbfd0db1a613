#!/usr/bin/env python3
"""Does what `make demo` shows hold under other conditions: one core, a quota of 1.5 cores, beside a busy program?

    .venv/bin/python bench/accuracy/demo_conditions.py [--conditions one-core,quota-1.5,foreign-load] [--rounds 2]

Under each condition, the demo's training is recorded as it is and with the number of workers that its report
recommends, in turns; where it recommends none, with the one worker that people would try. Prints what was said and
measured. A quarter of an hour for three conditions; nothing else may run on the machine.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median

from live.conditions import CONDITIONS, Unavailable, under
from live.laboratory import FULLBORE, ROOT

sys.path.insert(0, str(ROOT / "scripts"))
from demo_report import judge, recommended_workers  # noqa: E402

PHOTOS, STEPS = 2000, 150
WORTH_DOING = 1.05  # a gain below this is none


class Demo:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.photos = folder / "photos"
        maker = [sys.executable, ROOT / "examples/make_photos.py", self.photos, "--count", PHOTOS]
        subprocess.run([str(word) for word in maker], check=True, stdout=subprocess.DEVNULL)

    def train(self, workers: int, enter: Callable[[], None]) -> dict:
        report = self.folder / "report.json"
        watch = [FULLBORE, "run", "-o", self.folder / "runs", "--json", report, "--quiet", "--"]
        script = [sys.executable, ROOT / "examples/train_resnet.py", "--data", self.photos]
        command = [*watch, *script, "--workers", workers, "--steps", STEPS]
        subprocess.run([str(word) for word in command], check=True, capture_output=True, preexec_fn=enter)
        return json.loads(report.read_text())


def rate(reports: list[dict]) -> float:
    return median(report["throughput"]["samples_per_s"] for report in reports)


def row(name: str, before: list[dict], after: list[dict], wanted: int | None, tried: int) -> str:
    first = before[0]["findings"][0]
    gain = rate(after) / rate(before)
    measured = f"{rate(before):.0f} to {rate(after):.0f} images/s with num_workers={tried}: {gain:.2f}x"
    if wanted is None:
        outcome = "right" if gain < WORTH_DOING else "missed"
        said = " ".join([first["title"], *first["fix"][:1]])
        return f"| {name} | {said} | none | {measured} | {outcome} |"
    promised = first["speedup"]
    predicted = f"{promised['expected']:.2f}x ({promised['low']:.2f}x to {promised['high']:.2f}x)"
    outcome = judge(gain, promised["low"], promised["high"])
    return f"| {name} | num_workers={wanted} | {predicted} | {measured} | {outcome} |"


def examined(demo: Demo, name: str, rounds: int) -> str:
    with under(CONDITIONS[name]) as enter:
        before, after = [demo.train(0, enter)], []
        wanted = recommended_workers(before[0])
        tried = 1 if wanted is None else wanted
        for turn in range(rounds):
            if turn > 0:
                before.append(demo.train(0, enter))
            after.append(demo.train(tried, enter))
    return row(name, before, after, wanted, tried)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--conditions", default="one-core,quota-1.5,foreign-load", help=", ".join(CONDITIONS))
    parser.add_argument("--rounds", type=int, default=2)
    flags = parser.parse_args()
    names = flags.conditions.split(",")
    if unknown := set(names) - set(CONDITIONS):
        parser.error(f"no condition '{', '.join(sorted(unknown))}'; there are {', '.join(CONDITIONS)}")
    with tempfile.TemporaryDirectory(prefix="fullbore-demo-") as folder:
        demo = Demo(Path(folder))
        print("| condition | advised | predicted | measured | outcome |\n|---|---|---|---|---|")
        for name in names:
            try:
                print(examined(demo, name, flags.rounds), flush=True)
            except Unavailable as why:
                print(f"left out: {why}", file=sys.stderr)


if __name__ == "__main__":
    main()
