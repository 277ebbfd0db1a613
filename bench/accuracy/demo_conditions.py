#!/usr/bin/env python3
"""Does what `make demo` shows hold under other conditions: one core, a quota of 1.5 cores, beside a busy program?

    .venv/bin/python bench/accuracy/demo_conditions.py [--conditions as-is,one-core,quota-1.5,foreign-load]

Under each condition, the demo's training is recorded, and compared with the number of workers that its report
recommends (`fullbore compare`, as the demo does it); where it recommends none, with the one worker that people would
try. Prints what was said and measured. Some three minutes a condition; nothing else may run on the machine.
"""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from live.conditions import CONDITIONS, Unavailable, under
from live.laboratory import FULLBORE, ROOT

sys.path.insert(0, str(ROOT / "scripts"))
from demo_report import judge, recommended_workers, span  # noqa: E402

PHOTOS, STEPS, ENDLESS = 2000, 150, 1_000_000
BUDGET = "2m"
WORTH_DOING = 1.05  # a gain below this is none


class Demo:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.photos = folder / "photos"
        maker = [sys.executable, ROOT / "examples/make_photos.py", self.photos, "--count", PHOTOS]
        subprocess.run([str(word) for word in maker], check=True, stdout=subprocess.DEVNULL)

    def training(self, workers: int, steps: int) -> list[str]:
        script = [sys.executable, ROOT / "examples/train_resnet.py", "--data", self.photos]
        return [str(word) for word in (*script, "--workers", workers, "--steps", steps)]

    def asked(self, words: list, enter: Callable[[], None]) -> dict:
        """What the command writes into the file of its --json."""
        report = self.folder / "report.json"
        report.unlink(missing_ok=True)
        command = [FULLBORE, words[0], "-o", self.folder / "runs", "--json", report, *words[1:]]
        # The status of a comparison is 1 where there was no time for two pairs, too.
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, preexec_fn=enter)
        if not report.exists():
            sys.exit(f"demo_conditions.py: {done.stderr}")
        return json.loads(report.read_text())

    def recorded(self, enter: Callable[[], None]) -> dict:
        return self.asked(["run", "--quiet", "--", *self.training(0, STEPS)], enter)

    def proof(self, workers: int, enter: Callable[[], None]) -> dict:
        baseline, candidate = (shlex.join(self.training(number, ENDLESS)) for number in (0, workers))
        both = ["--baseline", baseline, "--candidate", candidate]
        return self.asked(["compare", "--budget", BUDGET, *both], enter)


def row(name: str, report: dict, proof: dict, wanted: int | None, tried: int) -> str:
    first = report["findings"][0]
    rates = [round(proof[side]["rate"] or 0) for side in ("baseline", "candidate")]
    measured = f"{rates[0]} to {rates[1]} images/s with num_workers={tried}: {span(proof['gain'])}"
    if wanted is None:
        outcome = "missed" if proof["verdict"] == "faster" and proof["gain"]["expected"] >= WORTH_DOING else "right"
        said = " ".join([first["title"], *first["fix"][:1]])
        return f"| {name} | {said} | none | {measured} | {outcome} |"
    promised = first["speedup"]
    return f"| {name} | num_workers={wanted} | {span(promised)} | {measured} | {judge(proof, promised)} |"


def examined(demo: Demo, name: str) -> str:
    with under(CONDITIONS[name]) as enter:
        report = demo.recorded(enter)
        wanted = recommended_workers(report)
        tried = 1 if wanted is None else wanted
        return row(name, report, demo.proof(tried, enter), wanted, tried)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--conditions", default="as-is,one-core,quota-1.5,foreign-load", help=", ".join(CONDITIONS))
    flags = parser.parse_args()
    names = flags.conditions.split(",")
    if unknown := set(names) - set(CONDITIONS):
        parser.error(f"no condition '{', '.join(sorted(unknown))}'; there are {', '.join(CONDITIONS)}")
    with tempfile.TemporaryDirectory(prefix="fullbore-demo-") as folder:
        demo = Demo(Path(folder))
        print("| condition | advised | predicted | measured | outcome |\n|---|---|---|---|---|")
        for name in names:
            try:
                print(examined(demo, name), flush=True)
            except Unavailable as why:
                print(f"left out: {why}", file=sys.stderr)


if __name__ == "__main__":
    main()
