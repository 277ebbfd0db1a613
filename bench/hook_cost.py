#!/usr/bin/env python3
"""What the Python hook costs the training, each figure against its target.

  a step of nothing    a step whose phases do next to nothing, so that what the hook adds shows, at batch sizes 1 and
                       256; the latter with samples that are loaded one by one, in the training process
                       (targets: 10 us by the native path, 25 us in Python)
  step time ratio      real steps of about 0.6 ms and about 20 ms, with the hook / without it (target: 1.01)
  a worker's fetch     what a loader's worker pays for a batch (target: 5 us)
  start                what the hook adds to a Python process that never imports torch (target: 1 ms)

Without the hook, with its native path and with its Python path take turns of a few hundred steps in one process
(bench/hook_cost/process.py), so that neither a noisy machine nor the chances of a process hide the difference: the
figures are medians over pairs of neighbouring turns. A turn counts whole, so what interrupts the training now and then
(the line sampler) is part of it.

    bench/hook_cost.py [--python PYTHON] [--native DIR] [--rounds N] [--only KIND] [--json FILE] [--check]
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
SITE = ROOT / "python" / "fullbore" / "hook" / "site"
NATIVE = ROOT / "build" / "release" / "python" / "fullbore" / "hook" / "core"
PATHS = ("native", "python")
KINDS = {
    "batch1": "a step of nothing, batch 1",
    "batch256": "a step of nothing, batch 256",
    "1ms": "a step of {:.2f} ms",
    "20ms": "a step of {:.1f} ms",
    "fetch": "a worker's fetch",
}
# The same where a CUDA device computes: asked for by name, see bench/gpu_check.
ON_DEVICE = {kind: "a step of {:.2f} ms on the device" for kind in ("device1ms", "device5ms", "device50ms")}
# What may be added, in us, or the ratio of step times.
TARGETS = {
    "batch1": {"native": 10, "python": 25},
    "batch256": {"native": 10, "python": 25},
    "1ms": {"native": 1.01, "python": 1.05},
    "20ms": {"native": 1.01, "python": 1.01},
    "fetch": {"native": 5, "python": 10},
    **{kind: {"native": 1.02, "python": 1.05} for kind in ON_DEVICE},
}


def clean_environment() -> dict:
    return {k: v for k, v in os.environ.items() if not k.startswith(("FULLBORE_", "PYTHON"))}


def hooked_environment(directory: str) -> dict:
    ours = {"FULLBORE_CHANNEL": directory, "FULLBORE_RUN": "bench", "FULLBORE_HOOK_DIR": str(SITE)}
    ours["FULLBORE_WINDOWS"] = "off"  # windows_cost.py measures them
    return {**clean_environment(), **ours, "PYTHONPATH": str(SITE)}


def measure_steps(python: str, native: pathlib.Path, kind: str, rounds: int) -> dict:
    with tempfile.TemporaryDirectory() as directory:
        env = {**clean_environment(), "FULLBORE_CHANNEL": directory, "OMP_NUM_THREADS": "1"}
        command = [python, str(ROOT / "bench" / "hook_cost" / "process.py"), kind, str(rounds), str(native)]
        done = subprocess.run(command, env=env, text=True, stdout=subprocess.PIPE)
        if done.returncode != 0:
            raise SystemExit(
                f"{python} could not train: see above\n"
                "hint: --python with an interpreter that has torch; scripts/build.sh release fullbore"
            )
        said = [json.loads(line) for path in pathlib.Path(directory).glob("*.jsonl") for line in path.open()]
    failures = [line["text"] for line in said if line["k"] == "message"]
    if failures:
        raise SystemExit("\n".join(failures))
    taken = json.loads(done.stdout)
    return {"ns_without": statistics.median(taken["off"]), **{path: compared(taken, path) for path in PATHS}}


def compared(taken: dict, path: str) -> dict:
    pairs = list(zip(taken["off"], taken[path]))
    ratios = sorted(with_us / without for without, with_us in pairs)
    added = sorted(with_us - without for without, with_us in pairs)
    quarter = len(pairs) // 4
    return {
        "added_ns": statistics.median(added),
        "added_ns_quartiles": [added[quarter], added[-1 - quarter]],
        "ratio": statistics.median(ratios),
        "ratio_quartiles": [ratios[quarter], ratios[-1 - quarter]],
    }


def measure_start(python: str, rounds: int) -> dict:
    """Starts a Python that does nothing, alternately with the hook and without."""
    with tempfile.TemporaryDirectory() as directory:
        environments = (clean_environment(), hooked_environment(directory))
        pairs = []
        for _ in range(rounds):
            taken = []
            for env in environments:
                begin = time.perf_counter_ns()
                subprocess.run([python, "-c", "pass"], env=env, check=True)
                taken.append(time.perf_counter_ns() - begin)
            pairs.append(taken)
    return {
        "start_ns_without": statistics.median(without for without, _ in pairs),
        "start_ns_with": statistics.median(hook for _, hook in pairs),
        "added_ns": statistics.median(hook - without for without, hook in pairs),
    }


def table(results: dict) -> list[tuple[str, str, str, bool]]:
    rows = []
    for kind, name in {**KINDS, **ON_DEVICE}.items():
        for path in PATHS if kind in results else ():
            result, target = results[kind][path], TARGETS[kind][path]
            title = f"{name.format(results[kind]['ns_without'] / 1e6)}, {path}"
            if target < 2:
                low, high = result["ratio_quartiles"]
                figure, wanted = f"{result['ratio']:.3f} ({low:.3f} .. {high:.3f})", f"{target}"
                met = result["ratio"] <= target
            else:
                low, high = (ns / 1e3 for ns in result["added_ns_quartiles"])
                figure, wanted = f"{result['added_ns'] / 1e3:.1f} us ({low:.1f} .. {high:.1f})", f"{target} us"
                met = result["added_ns"] <= target * 1e3
            rows.append((title, figure, wanted, met))
    if "start" in results:
        start_ns = results["start"]["added_ns"]
        rows.append(("start of Python", f"{start_ns / 1e6:+.2f} ms", "1 ms", start_ns <= 1e6))
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", default=sys.executable, help="an interpreter with torch (default: this one)")
    parser.add_argument("--native", type=pathlib.Path, default=NATIVE, help="where the hook's extension is")
    parser.add_argument("--rounds", type=int, default=40, help="turns of each of the three (default: 40)")
    parser.add_argument(
        "--only", choices=[*KINDS, *ON_DEVICE, "start"], action="append", help="only this row; may be repeated"
    )
    parser.add_argument("--json", help="write the figures to this file (-: standard output)")
    parser.add_argument("--check", action="store_true", help="exit with 1 if a target is missed")
    arguments = parser.parse_args()

    results = {}
    for kind in arguments.only or [*KINDS, "start"]:
        if kind == "start":
            results[kind] = measure_start(arguments.python, arguments.rounds)
        else:
            results[kind] = measure_steps(arguments.python, arguments.native, kind, arguments.rounds)
    rows = table(results)
    text = json.dumps({**results, "table": rows}, indent=1)
    if arguments.json == "-":
        print(text)
    elif arguments.json:
        pathlib.Path(arguments.json).write_text(text + "\n")
    for name, figure, target, met in rows:
        print(f"{name:<38}{figure:>26}   target {target:<8}{'met' if met else 'MISSED'}", file=sys.stderr)
    return 1 if arguments.check and not all(met for *_, met in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
