#!/usr/bin/env python3
"""Reading a trace: Fullbore, json.load and Holistic Trace Analysis compared in one run. `explain` is the whole command,
with findings and their predictions; `fullbore` only reads.

    explain_bench.py [--traces DIR] [--hta-python PYTHON] [--copies 20] [--large-peers]

The traces are ddp-v100-rank1of2 (from ../shared/traces or $FULLBORE_TRACES) and the same repeated --copies times with
shifted times. --hta-python is a Python with hta (pip install HolisticTraceAnalysis, in a separate environment); without
it HTA is left out, with a note. --large-peers makes the peers read the large file too, which takes them minutes and
several gigabytes.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
HERE = pathlib.Path(__file__).resolve().parent
READER = ROOT / "build/release/bench/read_trace"
EXPLAIN = [ROOT / "build/release/fullbore", "explain", "--quiet", "--json", "/dev/null"]

JSON_LOAD = "import json, sys; json.load(open(sys.argv[1], encoding='utf-8', errors='replace'), strict=False)"
HTA = """
import sys, logging
logging.disable(logging.WARNING)
from hta.trace_analysis import TraceAnalysis
analysis = TraceAnalysis(trace_files={0: sys.argv[1]}, trace_dir='')
analysis.get_temporal_breakdown(visualize=False)
"""


def measured(command: list[str]) -> dict:
    """Wall time, CPU time and peak memory of a command that must succeed."""
    code = (
        "import json, resource, subprocess, sys, time\n"
        "begin = time.monotonic()\n"
        "done = subprocess.run(sys.argv[1:], stdout=subprocess.PIPE)\n"
        "wall = time.monotonic() - begin\n"
        "used = resource.getrusage(resource.RUSAGE_CHILDREN)\n"
        "print(json.dumps({'rc': done.returncode, 'wall_s': wall, 'cpu_s': used.ru_utime + used.ru_stime,\n"
        "                  'peak_mb': used.ru_maxrss / 1024, 'out': done.stdout.decode()}))\n"
    )
    out = subprocess.run([sys.executable, "-c", code, *command], stdout=subprocess.PIPE, check=True).stdout
    result = json.loads(out)
    if result["rc"] != 0:
        sys.exit(f"failed: {' '.join(command[:3])} ...")
    return result


def fastest(command: list[str], times: int) -> dict:
    return min((measured(command) for _ in range(times)), key=lambda result: result["wall_s"])


def row(name: str, result: dict, size: int, ours: dict | None) -> None:
    rate = size / 1e6 / result["wall_s"]
    text = f"  {name:12s} {result['wall_s']:9.3f} s  {rate:8.0f} MB/s  {result['peak_mb']:8.0f} MB"
    if ours is not None:
        text += f"   {result['wall_s'] / ours['wall_s']:7.1f} times our time"
    print(text, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--traces", default=os.environ.get("FULLBORE_TRACES", ROOT.parent / "shared/traces"))
    parser.add_argument("--hta-python")
    parser.add_argument("--copies", type=int, default=20)
    parser.add_argument("--large-peers", action="store_true")
    args = parser.parse_args()
    compressed = pathlib.Path(args.traces) / "ddp-v100-rank1of2.json.gz"
    if not compressed.exists():
        sys.exit(f"no {compressed}: name the directory of the traces with --traces or $FULLBORE_TRACES")
    if not READER.exists():
        sys.exit(f"no {READER}: cmake --preset release && cmake --build --preset release")
    with tempfile.TemporaryDirectory() as scratch:
        small = pathlib.Path(scratch) / "small.json"
        with gzip.open(compressed) as packed, open(small, "wb") as plain:
            shutil.copyfileobj(packed, plain)
        files = [("as it is", small)]
        for copies in (args.copies // 2, args.copies):
            large = pathlib.Path(scratch) / f"times{copies}.json"
            subprocess.run([sys.executable, HERE / "repeat_trace.py", small, str(copies), large], check=True)
            files.append((f"repeated {copies} times", large))
        before = None
        for name, path in files:
            size = path.stat().st_size
            ours = fastest([str(READER), str(path)], 3)
            about = json.loads(ours["out"])
            print(f"\n{name}: {size / 1e6:.0f} MB, {about['events']} events, busy {about['busy_ns']} ns")
            row("fullbore", ours, size, None)
            row("explain", fastest([*map(str, EXPLAIN), str(path)], 3), size, None)
            if path == small or args.large_peers:
                row("json.load", measured([sys.executable, "-c", JSON_LOAD, str(path)]), size, ours)
                if args.hta_python:
                    row("HTA", measured([args.hta_python, "-c", HTA, str(path)]), size, ours)
                else:
                    print("  HTA          left out: --hta-python is not given")
            if before is not None and before[0] != "as it is":
                more = about["events"] - before[1]["events"]
                grown = (ours["peak_mb"] - before[2]["peak_mb"]) * 2**20
                print(
                    f"  twice the size: {ours['wall_s'] / before[2]['wall_s']:.2f} times the time, "
                    f"{grown / more:.1f} more bytes of memory per event"
                )
            before = (name, about, ours)
        row_gz = fastest([str(READER), str(compressed)], 3)
        print(f"\ngzip, {compressed.stat().st_size / 1e6:.1f} MB of {small.stat().st_size / 1e6:.0f} MB")
        row("fullbore", row_gz, small.stat().st_size, None)


if __name__ == "__main__":
    main()
