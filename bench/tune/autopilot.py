#!/usr/bin/env python3
"""`fullbore run --autopilot` beside what `fullbore tune` finds: planted causes on the input side, and programs.

    bench/tune/autopilot.py run [PROGRAM...] [--turns 2] [--results FILE]
    bench/tune/autopilot.py show [--results FILE]

`run` tunes each program (what `tune` turns unless told otherwise: nothing that changes training results), and then runs
it to its end in turns: as it is, with the settings that tune recommends, and as it is with --autopilot. Compared is the
throughput of the last third of each run. All that is finished is a line in the results; after Ctrl-C, the same command
goes on. On a machine that does anything else it means nothing. A program takes four to five minutes.

`show` prints the table. Target: the autopilot ends within 5 % of what tune found, without a restart.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sqlite3
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from grid import PHOTOS, ROOT, Results, make_photos

sys.path.insert(0, str(ROOT / "tests" / "foreign"))
from run_file import SAMPLES, columns  # noqa: E402

FULLBORE = ROOT / "build" / "release" / "fullbore"
PLANTED = ROOT / "tests" / "planted" / "cases"
PROGRAMS = ROOT / "bench" / "tune" / "programs"
RESULTS = ROOT / ".fullbore" / "bench" / "autopilot.jsonl"
MOST = "6s"  # of each of tune's trials
PLACE = "/dev/shm"  # for what programs write: one place where a trial, too, may make sockets
END_NS = 1  # the column of a block of windows in which each of them ends

# By the time that a run takes as it is: half a minute each, in epochs of two to three seconds.
PLANTED_EPOCHS = {
    "no_workers": (50, 7),
    "too_few_workers": (50, 7),
    "storage": (50, 7),
    "collate": (60, 10),
    "slow_sample": (100, 8),
}
OTHERS = {
    "imagenet": [str(PHOTOS), "--epochs", "20"],
    "hf_trainer": ["24"],
    "lightning_fit": [str(PHOTOS), "20"],
    "collects": ["60"],
}
WAYS = ["as it is", "tune", "--autopilot"]


def command(name: str, scratch: str) -> list[str]:
    if name in OTHERS:
        return [sys.executable, str(PROGRAMS / f"{name}.py"), *OTHERS[name]]
    steps, epochs = PLANTED_EPOCHS[name]
    paths = ["--truth", f"{scratch}/truth.json", "--photos", str(PHOTOS), "--scratch", scratch]
    return [sys.executable, str(PLANTED / f"{name}.py"), *paths, "--steps", str(steps), "--epochs", str(epochs)]


def fullbore(words: list[str], scratch: str, environment: dict[str, str] | None = None) -> str:
    """What it said on standard error."""
    everything = {**os.environ, **(environment or {})}
    done = subprocess.run([str(FULLBORE), *words], cwd=scratch, text=True, capture_output=True, env=everything)
    if done.returncode != 0:
        raise SystemExit(f"fullbore {' '.join(words)} ended with {done.returncode}:\n{done.stderr[-2000:]}")
    return done.stderr


def tuned(name: str) -> dict:
    with tempfile.TemporaryDirectory(prefix="fullbore-autopilot-", dir=PLACE) as scratch:
        options = ["-o", f"{scratch}/runs", "--json", f"{scratch}/answer.json", "--most", MOST, "--budget", "1h"]
        fullbore(["tune", *options, "--", *command(name, scratch)], scratch)
        answer = json.loads(Path(scratch, "answer.json").read_text())
    return {"settings": answer["recommended"]["settings"], "gain": answer["recommended"]["gain"]}


def rate_at_end(run_file: Path) -> float:
    """Samples/s of the last third of the run's steps."""
    with sqlite3.connect(run_file) as database:
        blocks = [columns(data) for (data,) in database.execute("SELECT data FROM step_window")]
    windows = sorted(pair for block in blocks for pair in zip(block[END_NS], block[SAMPLES]))
    last = windows[len(windows) * 2 // 3 - 1 :]
    return sum(samples for _, samples in last[1:]) / (last[-1][0] - last[0][0]) * 1e9


def run_once(name: str, way: str, settings: dict) -> dict:
    with tempfile.TemporaryDirectory(prefix="fullbore-autopilot-", dir=PLACE) as scratch:
        as_apply_does = {"FULLBORE_SETTINGS": json.dumps(settings)} if way == "tune" and settings else {}
        words = ["run", "-o", f"{scratch}/runs", *(["--autopilot"] if way == "--autopilot" else []), "--"]
        said = fullbore([*words, *command(name, scratch)], scratch, as_apply_does)
        (run_file,) = Path(scratch, "runs").glob("*.fbr")
        heard = re.findall(r"^fullbore: --autopilot: (.*)", said, re.MULTILINE)
        return {"way": way, "rate": rate_at_end(run_file), "said": heard}


def run(names: list[str], turns: int, results: Results) -> None:
    make_photos()
    for name in names:
        if not results.of(name, "tune"):
            results.add(name, "tune", tuned(name))
        settings = results.of(name, "tune")[0]["settings"]
        for turn in range(turns):
            for way in WAYS:
                done = [line for line in results.of(name, "run") if line["way"] == way]
                if len(done) <= turn:
                    results.add(name, "run", run_once(name, way, settings))


def show(results: Results) -> None:
    print("| program | tune's settings | it said | whole runs gain | autopilot | gain | of tune's |")
    print("|---|---|---|---|---|---|---|")
    for name in [*PLANTED_EPOCHS, *OTHERS]:
        lines = results.of(name, "run")
        rates = {way: [line["rate"] for line in lines if line["way"] == way] for way in WAYS}
        if not all(rates.values()):
            continue
        plain, by_tune, by_pilot = (statistics.median(rates[way]) for way in WAYS)
        settings, gain = (results.of(name, "tune")[0][part] for part in ("settings", "gain"))
        promised = f"{gain['expected']:.2f}x ({gain['low']:.2f} to {gain['high']:.2f})"
        chosen = " ".join(f"{knob}={json.dumps(value)}" for knob, value in settings.items()) or "as it is"
        said = next((line["said"] for line in reversed(lines) if line["way"] == "--autopilot"), [])
        tune = f"{chosen} | {promised} | {by_tune / plain:.2f}x"
        pilot = f"{'; '.join(said) or 'nothing'} | {by_pilot / plain:.2f}x"
        print(f"| {name} | {tune} | {pilot} | {by_pilot / by_tune:.2f} |")


def main() -> None:
    everything = [*PLANTED_EPOCHS, *OTHERS]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["run", "show"])
    parser.add_argument("programs", nargs="*", help=f"of {', '.join(everything)}; all of them")
    parser.add_argument("--turns", type=int, default=2, help="of the three ways (2)")
    parser.add_argument("--results", type=Path, default=RESULTS)
    given = parser.parse_args()
    if unknown := set(given.programs) - set(everything):
        parser.error(f"{', '.join(sorted(unknown))}: not a program; there are {', '.join(everything)}")
    results = Results(given.results)
    try:
        run(given.programs or everything, given.turns, results) if given.what == "run" else show(results)
    except KeyboardInterrupt:
        print(f"\nkept in {given.results}; the same command goes on", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    main()
