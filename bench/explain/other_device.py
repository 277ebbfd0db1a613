"""How well the device time of a program on one device follows from its trace on another, by class of kernel.

    python3 bench/explain/other_device.py TRACE_ON_A TRACE_ON_B

Each class is scaled by the roofline of both devices: what it takes on A, times what the same work would take at the
limit of B, over the same at the limit of A. Both traces must be of the same program.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
FULLBORE = os.environ.get("FULLBORE", ROOT / "build/release/fullbore")
WORTH_NS = 100_000  # classes that take less say nothing


def classes(trace: str) -> dict[str, dict]:
    command = [FULLBORE, "explain", "--section", "roofline", trace, "--json", "-"]
    section = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)["sections"][0]
    names = [column["name"] for column in section["columns"]]
    return {row["class"]: row for row in (dict(zip(names, values)) for values in section["rows"])}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("a", metavar="TRACE_ON_A")
    parser.add_argument("b", metavar="TRACE_ON_B")
    arguments = parser.parse_args()
    a, b = classes(arguments.a), classes(arguments.b)
    print(f"{'class':<16} {'on A':>10} {'predicted':>10} {'on B':>10} {'off by':>8}")
    for name, on_a in a.items():
        on_b = b.get(name)
        judged = on_b and on_a["attainable_ns"] and on_b["attainable_ns"] and on_a["device_ns"] >= WORTH_NS
        if name == "all" or not judged:
            continue
        predicted = on_a["device_ns"] * on_b["attainable_ns"] / on_a["attainable_ns"]
        figures = f"{on_a['device_ns'] / 1e6:7.2f} ms {predicted / 1e6:7.2f} ms {on_b['device_ns'] / 1e6:7.2f} ms"
        print(f"{name:<16} {figures} {predicted / on_b['device_ns'] - 1:+8.0%}")


if __name__ == "__main__":
    main()
