"""What matrix products and convolutions reach of their device's peak, by type, in traces with shapes.

    python3 bench/explain/reached.py TRACE...

The figures behind what the replay expects of tensor cores (src/explain/roofline/precision.cc).
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
FULLBORE = os.environ.get("FULLBORE", ROOT / "build/release/fullbore")


def operators(trace: str) -> list[dict]:
    command = [FULLBORE, "explain", "--section", "roofline-operators", trace, "--json", "-"]
    section = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)["sections"][0]
    names = [column["name"] for column in section["columns"]]
    return [dict(zip(names, row)) for row in section["rows"]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("traces", nargs="+", metavar="TRACE")
    print(f"{'trace':<42} {'kind':<12} {'type':<9} {'time':>9}  reached")
    for trace in parser.parse_args().traces:
        groups: dict[tuple[str, str], list[tuple[int, float]]] = collections.defaultdict(list)
        for one in operators(trace):
            if one["kind"] in ("matrix", "convolution") and one["bound"] == "compute" and one["reached_ratio"]:
                groups[one["kind"], one["type"]].append((one["device_ns"], one["reached_ratio"]))
        for (kind, type_), found in sorted(groups.items()):
            total = sum(ns for ns, _ in found)
            reached = sum(ns * ratio for ns, ratio in found) / total
            print(f"{pathlib.Path(trace).name:<42} {kind:<12} {type_:<9} {total / 1e6:>6.2f} ms  {reached:.2f}")


if __name__ == "__main__":
    main()
