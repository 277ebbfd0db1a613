#!/usr/bin/env python3
"""When `fullbore run` says its verdict while the training still runs, and whether the end says the same.

Each planted case (tests/planted/cases) trains for a while under `fullbore run`; the line that appears meanwhile is
noted with its time since the start of the command, and compared with the first finding of the report. A healthy case
must hear nothing. Targets: within 60 s in eight cases, the same as at the end, healthy runs silent.

    bench/verdict_in_time.py [--seconds 75] [--json FILE] [CASE...]

Nothing else should run meanwhile: on a busy machine the verdict is rightly held back.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "planted"))
from planted_case import FULLBORE, Case, all_cases  # noqa: E402

CASES = ["no_workers", "too_few_workers", "storage", "slow_sample", "collate", "own_generator", "own_loader"]
CASES += ["logging_each_step", "checkpoint", "oversubscribed", "healthy", "rollout"]
MANY_STEPS = 1_000_000
LINE = re.compile(r"fullbore: (?!.* steps?,)(.*) \(fullbore explain .*\)")


def run(case: Case, photos: Path, scratch: Path, seconds: float) -> dict:
    """Trains until `seconds` have passed, then ends the training as Ctrl-C would."""
    report = scratch / f"{case.name}.json"
    own = ["--truth", scratch / "truth.json", "--photos", photos, "--scratch", scratch, "--steps", MANY_STEPS]
    command = [FULLBORE, "run", "-o", scratch / "runs", "--json", report, "--", sys.executable]
    command += [*case["LAUNCH"].split(), case.script, *own]
    log = scratch / f"{case.name}.log"
    begin = time.monotonic()
    with log.open("w") as stderr:
        process = subprocess.Popen(
            [str(part) for part in command],
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            stdout=subprocess.DEVNULL,
            stderr=stderr,
            start_new_session=True,
        )
    said: list[tuple[float, str]] = []
    while time.monotonic() < begin + seconds and process.poll() is None:
        time.sleep(0.2)
        lines = LINE.findall(log.read_text(errors="replace"))
        said += [(time.monotonic() - begin, line) for line in lines[len(said) :]]
    end(process)
    first = json.loads(report.read_text())["findings"][0]
    return {"case": case.name, "expect": case["EXPECT"], "said": said, "end": first}


def end(process: subprocess.Popen) -> None:
    """As Ctrl-C does; a script that is between two bytecodes of a library may swallow the first."""
    for number in (signal.SIGINT, signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        if process.poll() is None:
            os.killpg(process.pid, number)
        try:
            process.wait(timeout=15)
            return
        except subprocess.TimeoutExpired:
            continue


def row(result: dict) -> list[str]:
    end = " ".join(filter(None, [result["end"]["id"], result["end"].get("cause")]))
    if not result["said"]:
        return [result["case"], result["expect"], "-", end, "silent"]
    seconds, line = result["said"][-1]
    title = result["end"]["title"]
    words = title.split(":")[0].split("%")[-1].strip(" .").lower()
    same = words in line.lower() or title.lower().rstrip(".")[:40] in line.lower()
    return [result["case"], result["expect"], f"{result['said'][0][0]:.0f} s", end, "the same" if same else line]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", default=CASES, metavar="CASE")
    parser.add_argument("--seconds", type=float, default=75, help="how long each case trains")
    parser.add_argument("--json", type=Path, help="also write what was seen to this file")
    arguments = parser.parse_args()
    known = {case.name: case for case in all_cases()}
    unknown = [name for name in arguments.cases if name not in known]
    if unknown:
        parser.error(f"no case is called {unknown[0]!r}; there are {', '.join(known)}")
    results = []
    with tempfile.TemporaryDirectory() as folder:
        scratch, photos = Path(folder), Path(folder) / "photos"
        maker = [sys.executable, ROOT / "examples" / "make_photos.py", photos, "--count", "48"]
        subprocess.run(maker, check=True, capture_output=True)
        print("| case | planted | said after | first finding at the end | the line |\n|---|---|---|---|---|")
        for name in arguments.cases:
            results.append(run(known[name], photos, scratch, arguments.seconds))
            print("| " + " | ".join(row(results[-1])) + " |", flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
