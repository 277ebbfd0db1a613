"""How much later a step of a Slurm job starts with our plugin: beside steps without it, in turns, on a real cluster.

  bench/fleet/slurm_start.py [--rounds 40]

Each round runs a step without the plugin, with it switched off, with it and recording, and with a program that hangs
in fullbore's place; in another order each time. A step prints when it began; what counts is the time from srun's start
until then, and until srun has ended. One JSON object: medians in ms, and of the differences within each round to the
step without the plugin the medians and the 95 % quantiles.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import random
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests" / "fleet"))

from slurm_site import BINARY, PLUGIN, USER, Site, site, why_not  # noqa: E402

BEGAN = "import time; print(time.time_ns())"


def ways(folder: pathlib.Path) -> dict[str, str]:
    """Lines of plugstack.conf, as a site has them: with the usual bound on how long a start may wait."""
    hangs = folder / "hangs"
    hangs.write_text("#!/bin/sh\nexec sleep 600\n")
    hangs.chmod(0o755)
    usual = f"required {PLUGIN} dir={folder}/runs"
    return {
        "without": "",
        "off": f"{usual} default=off binary={BINARY}\n",
        "on": f"{usual} default=on binary={BINARY}\n",
        "hangs": f"{usual} default=on binary={hangs}\n",
    }


def measured(at: Site, line: str) -> tuple[float, float]:
    """ms until the task began, and until all of it had ended."""
    at.configure(line)
    begun_ns = time.time_ns()
    done = at.call("srun", "--ntasks=1", "/usr/bin/python3", "-S", "-c", BEGAN, user=USER)
    ended_ns = time.time_ns()
    if done.returncode != 0:
        raise SystemExit(done.stderr)
    if "hangs" not in line:
        at.wait_for_recorders()
    return (int(done.stdout) - begun_ns) / 1e6, (ended_ns - begun_ns) / 1e6


def summary(rounds: list[dict[str, float]]) -> dict:
    later = {way: sorted(each[way] - each["without"] for each in rounds) for way in rounds[0] if way != "without"}
    return {
        "median_ms": {way: round(statistics.median(each[way] for each in rounds), 1) for way in rounds[0]},
        "later_ms": {way: round(statistics.median(all_of), 1) for way, all_of in later.items()},
        "later_95_ms": {way: round(all_of[int(0.95 * (len(all_of) - 1))], 1) for way, all_of in later.items()},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=40)
    asked = parser.parse_args()
    if why_not():
        sys.exit(why_not())
    began, ended, recorded = [], [], 0
    with site() as at:
        lines = ways(at.folder)
        measured(at, lines["on"])  # caches
        for _ in range(asked.rounds):
            order = random.sample(list(lines), len(lines))
            taken = {way: measured(at, lines[way]) for way in order}
            began.append({way: taken[way][0] for way in lines})
            ended.append({way: taken[way][1] for way in lines})
        recorded = len(list(at.runs.glob("*/*.fbr"))) - 1
    cores = subprocess.check_output(["nproc"], text=True).strip()
    said = {"rounds": asked.rounds, "cores": int(cores), "recorded": recorded}
    print(json.dumps({**said, "until_the_task_began": summary(began), "until_all_had_ended": summary(ended)}, indent=2))


if __name__ == "__main__":
    main()
