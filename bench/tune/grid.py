#!/usr/bin/env python3
"""`fullbore tune` against the grid of all combinations, on three real trainings of different kind.

    bench/tune/grid.py run [images transformer tiny_steps] [--times 10] [--results FILE]
    bench/tune/grid.py show [--results FILE]

`run` tunes each training --times times, tries its whole grid once (workers x batch x prefetch x threads), and then
compares the recommendation and the grid's best with the script as it is (`fullbore compare --set`). All that is
finished is a line in the results; Ctrl-C at any time, and the same command goes on. On a machine that does anything
else it means nothing. The grid of one training takes ten minutes, tuning it once under two.

`show` prints the table. Targets: the recommendation reaches 95 % of the grid's best, with 12 trials and a quarter of
the grid's time; nine times of ten the same settings; no smaller batch or fewer workers in the grid within 5 % of it.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FULLBORE = ROOT / "build" / "release" / "fullbore"
TRAININGS = ROOT / "bench" / "tune" / "trainings"
PHOTOS = ROOT / ".fullbore" / "bench" / "photos"
RESULTS = ROOT / ".fullbore" / "bench" / "grid.jsonl"

WORKERS, PREFETCH, THREADS = [0, 1, 2, 3], [2, 4], [1, 2]
BATCHES = {
    "images": [8, 16, 32, 64, 128],
    "transformer": [4, 8, 16, 32, 64],
    "tiny_steps": [16, 64, 256, 1024, 4096],
}
# What the scripts set themselves: tune leaves such a value out of a trial's settings.
OWN = {
    "images": {"batch_size": 32, "num_workers": 0},
    "transformer": {"batch_size": 16, "num_workers": 1},
    "tiny_steps": {"batch_size": 16, "num_workers": 2},
}
PROOF = "4m"  # of what the recommendation brings, and of the grid's best
MOST = "6s"  # of each trial


def command(name: str) -> list[str]:
    files = [PHOTOS] if name == "images" else []
    return [str(part) for part in [sys.executable, TRAININGS / f"{name}.py", *files]]


def values(name: str) -> list[str]:
    """The same for the search and for the grid."""
    lists = {
        "num_workers": WORKERS,
        "batch_size": BATCHES[name],
        "prefetch_factor": PREFETCH,
        "intraop_threads": THREADS,
    }
    return [part for knob, each in lists.items() for part in ("--set", f"{knob}={','.join(map(str, each))}")]


def make_photos() -> None:
    if not PHOTOS.exists():
        maker = [sys.executable, ROOT / "examples" / "make_photos.py", PHOTOS, "--count", "300"]
        subprocess.run([str(part) for part in maker], check=True)


def tune(name: str, *options: str) -> dict:
    with tempfile.TemporaryDirectory(prefix="fullbore-grid-") as folder:
        out = Path(folder) / "answer.json"
        begin = time.monotonic()
        own = [FULLBORE, "tune", "-o", f"{folder}/runs", "--json", out, "--most", MOST, "--budget", "2h"]
        subprocess.run(
            [str(part) for part in [*own, *options, *values(name), "--", *command(name)]],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        answer = json.loads(out.read_text())
    return {"seconds": time.monotonic() - begin, "answer": answer}


def gain_of(name: str, settings: dict) -> dict:
    """Against the script as it is."""
    if not settings:
        return {"expected": 1.0, "low": 1.0, "high": 1.0}
    with tempfile.TemporaryDirectory(prefix="fullbore-grid-") as folder:
        out = Path(folder) / "answer.json"
        chosen = [part for knob, value in settings.items() for part in ("--set", f"{knob}={json.dumps(value)}")]
        own = [FULLBORE, "compare", "-o", f"{folder}/runs", "--json", out, "--budget", PROOF]
        words = [str(part) for part in [*own, *chosen, "--", *command(name)]]
        subprocess.run(words, stdout=subprocess.DEVNULL)
        gain = json.loads(out.read_text())["gain"] if out.exists() else None
        return gain or sys.exit(f"grid.py: {' '.join(words)}: there was no time for two pairs")


def best_of(grid: dict) -> dict:
    return max((trial for trial in grid["trials"] if trial["samples_per_s"]), key=lambda trial: trial["samples_per_s"])


def usual(tunes: list[dict]) -> tuple[dict, int]:
    """The settings recommended most often, and how often."""
    said = Counter(json.dumps(each["answer"]["recommended"]["settings"], sort_keys=True) for each in tunes)
    text, times = said.most_common(1)[0]
    return json.loads(text), times


class Results:
    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self.lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def of(self, name: str, kind: str) -> list[dict]:
        return [line for line in self.lines if line["training"] == name and line["kind"] == kind]

    def add(self, name: str, kind: str, what: dict) -> None:
        self.lines.append({"training": name, "kind": kind, **what})
        with self.path.open("a") as out:
            out.write(json.dumps(self.lines[-1]) + "\n")
        print(f"{time.strftime('%H:%M')} {name}: {kind} done", flush=True)


def run(names: list[str], times: int, results: Results) -> None:
    make_photos()
    for name in names:
        while len(results.of(name, "tune")) < times:
            results.add(name, "tune", tune(name))
        if not results.of(name, "grid"):
            results.add(name, "grid", tune(name, "--exhaustive"))
        if times and not results.of(name, "gains"):
            recommended, _ = usual(results.of(name, "tune"))
            best = best_of(results.of(name, "grid")[0]["answer"])["settings"]
            ours = gain_of(name, recommended)
            gains = {"recommended": ours, "best": ours if best == recommended else gain_of(name, best)}
            results.add(name, "gains", gains)


def smaller_and_near(name: str, grid: dict, chosen: dict) -> list[dict]:
    """Settings of the grid with a smaller batch or fewer workers, no more of the other, within 5 % of its best."""
    near = 0.95 * best_of(grid)["samples_per_s"]

    def is_smaller(settings: dict) -> bool:
        its, theirs = {**OWN[name], **settings}, {**OWN[name], **chosen}
        both = [(its[knob], theirs[knob]) for knob in OWN[name]]
        return any(a < b for a, b in both) and all(a <= b for a, b in both)

    return [
        trial["settings"]
        for trial in grid["trials"]
        if (trial["samples_per_s"] or 0) >= near and is_smaller(trial["settings"])
    ]


def show(results: Results) -> None:
    print("| training | reaches of the grid's best | trials (grid) | time (grid) | same settings | smaller, as near |")
    print("|---|---|---|---|---|---|")
    for name in BATCHES:
        tunes, grids, gains = (results.of(name, kind) for kind in ("tune", "grid", "gains"))
        if not (tunes and grids and gains):
            continue
        grid = grids[0]["answer"]
        chosen, often = usual(tunes)
        ours, best = (gains[0][who] for who in ("recommended", "best"))
        reached = f"{ours['expected'] / best['expected']:.0%} ({ours['low'] / best['high']:.0%} to "
        reached += f"{ours['high'] / best['low']:.0%})"
        trials = statistics.median(len(each["answer"]["trials"]) for each in tunes)
        seconds = statistics.median(each["seconds"] for each in tunes)
        said = " ".join(f"{knob}={value}" for knob, value in {**OWN[name], **chosen}.items())
        print(
            f"| {name}: {said} | {reached} | {trials:.0f} ({len(grid['trials'])}) | "
            f"{seconds / grids[0]['seconds']:.0%} of {grids[0]['seconds'] / 60:.0f} min | {often} of {len(tunes)} | "
            f"{len(smaller_and_near(name, grid, chosen))} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["run", "show"])
    parser.add_argument("trainings", nargs="*", help=f"of {', '.join(BATCHES)}; all of them")
    parser.add_argument("--times", type=int, default=10, help="of tuning each (10); 0: its grid only")
    parser.add_argument("--results", type=Path, default=RESULTS)
    given = parser.parse_args()
    if unknown := set(given.trainings) - set(BATCHES):
        parser.error(f"{', '.join(sorted(unknown))}: not a training; there are {', '.join(BATCHES)}")
    results = Results(given.results)
    try:
        run(given.trainings or list(BATCHES), given.times, results) if given.what == "run" else show(results)
    except KeyboardInterrupt:
        print(f"\nkept in {given.results}; the same command goes on", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    main()
