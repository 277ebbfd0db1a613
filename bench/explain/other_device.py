"""How well the device time of a program on one device is predicted from its trace on another, by class of kernel.

    python3 bench/explain/other_device.py TRACE_ON_A TRACE_ON_B

Both traces must be of the same program. Each is asked, with `fullbore explain --what-if device=...`, what the other
device would make of it; the other trace is the truth. Device time of the recorded steps, in both directions.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
FULLBORE = os.environ.get("FULLBORE", ROOT / "build/release/fullbore")
WORTH_NS = 50_000  # classes that take less say nothing


def report(trace: str, *options: str) -> dict:
    command = [FULLBORE, "explain", trace, *options, "--json", "-"]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def device_of(trace: str) -> str:
    return report(trace)["replay"]["device"]


def predicted(trace: str, device: str) -> dict[str, dict]:
    """By class: now, expected, low and high."""
    rung = report(trace, "--what-if", f"device={device}")["replay"]["what_if"][0]
    return {each["class"]: each for each in rung["classes"]}


def compare(asked: dict[str, dict], truth: dict[str, dict], start: str, goal: str) -> None:
    print(f"{start} -> {goal}")
    print(f"  {'class':<15} {'recorded':>10} {'predicted':>10} {'range':>20} {'truth':>10} {'off by':>7}")
    for name, each in asked.items():
        true_ns = truth.get(name, {}).get("now_ns", 0)
        if each["now_ns"] < WORTH_NS or true_ns < WORTH_NS:
            continue
        span = f"{each['low_ns'] / 1e6:.2f} to {each['high_ns'] / 1e6:.2f} ms"
        figures = f"{each['now_ns'] / 1e6:7.2f} ms {each['expected_ns'] / 1e6:7.2f} ms {span:>20}"
        print(f"  {name:<15} {figures} {true_ns / 1e6:7.2f} ms {each['expected_ns'] / true_ns - 1:+7.1%}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("a", metavar="TRACE_ON_A")
    parser.add_argument("b", metavar="TRACE_ON_B")
    arguments = parser.parse_args()
    device_a, device_b = device_of(arguments.a), device_of(arguments.b)
    from_a, from_b = predicted(arguments.a, device_b), predicted(arguments.b, device_a)
    compare(from_a, from_b, device_a, device_b)
    compare(from_b, from_a, device_b, device_a)


if __name__ == "__main__":
    main()
