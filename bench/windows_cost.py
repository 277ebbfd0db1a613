#!/usr/bin/env python3
"""What device windows cost the training, each figure against its target.

  the other steps   steps with a window among them, but for those that it marks, against steps without one
                    (target: 1.01, what the hook may cost)
  a window          how much longer its marked steps take than as many others
  of a run          what that is of the time until the plan allows the next window (target: 0.5 %)

In one process, turns of steps without and with a window follow each other: figures are medians over pairs of turns.

    bench/windows_cost.py [--python PYTHON] [--pairs N] [--json FILE] [--check]
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

from hook_cost import NATIVE, hooked_environment

TARGETS = {"other_steps": 1.01, "of_a_run": 0.005}
KINDS = {"small": "small steps, few operators", "many": "steps of many operators"}

# Prints, for each pair of turns, the ns of each step without a window, and with one: of marked steps and of others.
TRAINER = r"""
import json, sys, time
import torch
from torch import nn

torch.set_num_threads(1)
kind, pairs = sys.argv[1], int(sys.argv[2])
if kind == "small":
    model, inputs, turn = nn.Sequential(nn.Linear(192, 192), nn.ReLU(), nn.Linear(192, 8)), torch.randn(64, 192), 400
else:
    layer = nn.TransformerEncoderLayer(64, 4, 128, batch_first=True)
    model, inputs, turn = nn.TransformerEncoder(layer, 4, enable_nested_tensor=False), torch.randn(8, 32, 64), 60
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-6)

def step():
    begin = time.perf_counter_ns()
    optimizer.zero_grad()
    model(inputs).sum().backward()
    optimizer.step()
    return time.perf_counter_ns() - begin

for _ in range(100):
    step()
steps = sys.modules["_fullbore_hook.core.steps"]
owners = [getattr(look, "__self__", None) for look in steps.now_and_then]
(windows,) = [owner for owner in owners if type(owner).__name__ == "Windows"]
for pair in range(pairs + 1):
    without = [step() for _ in range(turn)]
    windows.begin(steps.hook.here(), time.monotonic_ns())
    marked, others = [], []
    while len(others) < turn:
        (marked if steps.state.in_window else others).append(step())
    windows.wait()
    if pair:  # the first one loads the profiler
        print(json.dumps({"without": without, "marked": marked, "others": others}), flush=True)
"""


def measure(python: str, kind: str, pairs: int) -> list[dict]:
    with tempfile.TemporaryDirectory() as directory:
        ours = {"FULLBORE_WINDOWS": "86400", "FULLBORE_HOOK_NATIVE": str(NATIVE), "OMP_NUM_THREADS": "1"}
        command = [python, "-c", TRAINER, kind, str(pairs)]
        environment = {**hooked_environment(directory), **ours}  # its windows lie where it runs
        done = subprocess.run(command, env=environment, cwd=directory, text=True, stdout=subprocess.PIPE)
        if done.returncode != 0:
            raise SystemExit(f"{python} could not train: see above\nhint: --python with an interpreter that has torch")
    return [json.loads(line) for line in done.stdout.splitlines()]


def figures(pairs: list[dict]) -> dict[str, float]:
    usual = statistics.median(statistics.mean(pair["without"]) for pair in pairs)
    ratios = sorted(statistics.mean(pair["others"]) / statistics.mean(pair["without"]) for pair in pairs)
    extra = statistics.median(sum(pair["marked"]) - len(pair["marked"]) * usual for pair in pairs)
    lasts = statistics.median(sum(pair["marked"]) for pair in pairs)
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests" / "hook"))
    from hook_package import load

    plan = load("torch.window_plan")
    until_next_ns = max(plan.FIRST_AFTER_NS, lasts / plan.BUDGET)
    return {
        "step_ns": usual,
        "other_steps": statistics.median(ratios),
        "other_steps_low": ratios[len(ratios) // 4],
        "other_steps_high": ratios[-1 - len(ratios) // 4],
        "window_ns": extra,
        "of_a_run": extra / until_next_ns,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--check", action="store_true", help="exit status 1 if a target is missed")
    options = parser.parse_args()
    found = {kind: figures(measure(options.python, kind, options.pairs)) for kind in KINDS}
    missed = 0
    for kind, of in found.items():
        print(f"{KINDS[kind]} ({of['step_ns'] / 1e6:.2f} ms)")
        spread = f"quartiles {of['other_steps_low']:.3f}, {of['other_steps_high']:.3f}"
        print(f"  the other steps   {of['other_steps']:.3f} ({spread}; target {TARGETS['other_steps']})")
        print(f"  a window          {of['window_ns'] / 1e6:.0f} ms more than its steps without it")
        print(f"  of a run          {of['of_a_run']:.2%} at most (target {TARGETS['of_a_run']:.1%})")
        missed += sum(of[name] > target for name, target in TARGETS.items())
    if options.json:
        options.json.write_text(json.dumps(found))
    return 1 if options.check and missed else 0


if __name__ == "__main__":
    os.environ.pop("PYTHONPATH", None)
    raise SystemExit(main())
