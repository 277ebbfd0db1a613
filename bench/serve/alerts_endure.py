#!/usr/bin/env python3
"""What tests/alerts shortens, at its full length: a receiver that is down for a minute, ten minutes of noise, live, and
a hundred times as much of it replayed.

    bench/serve/alerts_endure.py [--outage 60] [--noise 600] [--replays 100] [--seed 1]

The receiver refuses connections while an alert begins and, after half of the outage, ends. It must hear of each once.
A noisy and healthy run is written in real time, and `fullbore alerts watch` with the built-in rules looks on: it must
say nothing. Nor would any of these rules have fired, by `fullbore alerts test`, in as many other such runs of ten
minutes as --replays says. Prints the three, and ends with status 1 if one is not so.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = pathlib.Path(os.environ.get("FULLBORE_BINARY", ROOT / "build" / "release" / "fullbore"))
sys.path.insert(0, str(ROOT / "tests" / "alerts"))
from alert_runs import owed, running, those_that_fired  # noqa: E402
from noisy_run import NoisyRun, written  # noqa: E402
from receiver import Receiver  # noqa: E402

RULES = '[[alert]]\nname = "used"\nseries = "memory_used"\nabove = 1\nfor = "1s"\nnotify = ["webhook:URL"]'


def outage(directory: pathlib.Path, seconds: float) -> dict[str, object]:
    receiver = Receiver()
    receiver.leave()
    (directory / "alerts.toml").write_text(RULES.replace("URL", receiver.url))
    command = [BINARY, "run", "-o", directory / "runs", "--rules", directory / "alerts.toml", "--"]
    process = subprocess.Popen([*command, "sleep", str(seconds / 2)], stdout=subprocess.DEVNULL)
    run_file = running(directory / "runs")
    while "firing" not in owed(run_file):
        time.sleep(0.05)
    time.sleep(seconds)
    receiver.come_back()
    back = time.monotonic()
    receiver.wait_for("used", "resolved")
    heard_after_s = time.monotonic() - back
    while owed(run_file):
        time.sleep(0.05)
    process.wait()
    states = receiver.states("used")
    receiver.close()
    return {
        "outage_s": seconds,
        "heard": states,
        "heard_after_s": round(heard_after_s, 1),
        "fine": states == ["firing", "resolved"],
    }


def noise(directory: pathlib.Path, seconds: float, seed: int) -> dict[str, object]:
    run = NoisyRun(directory / "noisy.fbr", seed)
    run.grow(1)
    command = [BINARY, "alerts", "watch", run.path, "--rules", "default"]
    watch = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    while (now_s := (time.monotonic_ns() - run.begin_ns) / 1e9) < seconds:
        run.grow(now_s)
        time.sleep(1)
    run.end()
    said = watch.communicate(timeout=120)[0]
    listed = subprocess.run([BINARY, "alerts", run.path, "--json", "-"], capture_output=True, check=True)
    alerts = json.loads(listed.stdout)
    fine = not alerts and watch.returncode == 0 and "alert '" not in said
    return {"noise_s": seconds, "steps": run.step, "said": said, "alerts": alerts, "fine": fine}


def replays(directory: pathlib.Path, count: int, seed: int) -> dict[str, object]:
    fired: dict[int, dict[str, int]] = {}
    for each in range(seed + 1, seed + 1 + count):  # the run that is watched live has the first
        run_file = written(directory / f"healthy-{each}.fbr", each)
        command = [BINARY, "alerts", "test", "default", run_file, "--json", "-"]
        tested = subprocess.run(command, capture_output=True, check=True)
        if said := those_that_fired(tested.stdout):
            fired[each] = said
        run_file.unlink()
    return {"replays": count, "fired_by_seed": fired, "fine": not fired}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--outage", type=float, default=60)
    parser.add_argument("--noise", type=float, default=600)
    parser.add_argument("--replays", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    flags = parser.parse_args()
    fine = True
    with tempfile.TemporaryDirectory() as directory:
        for said in (
            lambda: outage(pathlib.Path(directory), flags.outage),
            lambda: noise(pathlib.Path(directory), flags.noise, flags.seed),
            lambda: replays(pathlib.Path(directory), flags.replays, flags.seed),
        ):
            result = said()
            fine = fine and bool(result["fine"])
            print(json.dumps(result), flush=True)
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
