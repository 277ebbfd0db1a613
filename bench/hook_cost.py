#!/usr/bin/env python3
"""What the Python hook costs the training.

Each figure against its target:

  hook time a step   a step whose phases do next to nothing, so that what the hook adds shows: the median
                     difference with and without it (target: 20 us)
  step time ratio    real steps of about 1 ms and about 20 ms, with the hook / without it (targets: 1.05, 1.01)
  start              what the hook adds to a Python process that never imports torch (target: 1 ms)

Two processes, one with the hook and one without, take turns, a block of steps each, so that a noisy machine disturbs
both alike: the ratio is the median over pairs of neighbouring blocks.

    bench/hook_cost.py [--python PYTHON] [--blocks N] [--json FILE] [--check]
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

SITE = pathlib.Path(__file__).resolve().parents[1] / "python" / "fullbore" / "hook" / "site"

# One process: reads a number of steps per line, trains that many, answers with the median step time in ns.
TRAINER = r"""
import statistics, sys, time
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.set_num_threads(1)
kind = sys.argv[1]
width, depth, batch = {"empty": (4, 1, 1), "1ms": (192, 4, 32), "20ms": (640, 5, 192)}[kind]

class Ready(Dataset):
    def __len__(self):
        return 1 << 30
    def __getitem__(self, index):
        return data
    def __getitems__(self, indices):
        return data

data = torch.randn(batch, width)
layers = [nn.Sequential(nn.Linear(width, width), nn.ReLU()) for _ in range(depth)]
model = nn.Sequential(*layers)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
batches = iter(DataLoader(Ready(), batch_size=batch, sampler=range(1 << 30), collate_fn=lambda samples: samples))

def step():
    x = next(batches)
    optimizer.zero_grad()
    loss = model(x).sum()
    loss.backward()
    optimizer.step()

for _ in range(30):
    step()
print("ready", flush=True)
for line in sys.stdin:
    times = []
    for _ in range(int(line)):
        begin = time.perf_counter_ns()
        step()
        times.append(time.perf_counter_ns() - begin)
    print(statistics.median(times), flush=True)
"""

BLOCK_STEPS = {"empty": 400, "1ms": 150, "20ms": 8}


def clean_environment() -> dict:
    return {k: v for k, v in os.environ.items() if not k.startswith(("FULLBORE_", "PYTHON"))}


def hooked_environment(directory: str) -> dict:
    ours = {"FULLBORE_CHANNEL": directory, "FULLBORE_RUN": "bench", "FULLBORE_HOOK_DIR": str(SITE)}
    return {**clean_environment(), **ours, "PYTHONPATH": str(SITE)}


class Trainer:
    """One of the two processes."""

    def __init__(self, python: str, kind: str, env: dict) -> None:
        self.process = subprocess.Popen(
            [python, "-c", TRAINER, kind],
            env={**env, "OMP_NUM_THREADS": "1"},
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        if self.process.stdout.readline() != "ready\n":
            raise SystemExit(f"{python} could not train: see above\nhint: --python with an interpreter that has torch")

    def block(self, steps: int) -> float:
        self.process.stdin.write(f"{steps}\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait()


def measure_steps(python: str, kind: str, blocks: int) -> dict:
    with tempfile.TemporaryDirectory() as directory:
        plain = Trainer(python, kind, clean_environment())
        hooked = Trainer(python, kind, hooked_environment(directory))
        pairs = []
        for index in range(blocks):
            order = (plain, hooked) if index % 2 == 0 else (hooked, plain)
            taken = {trainer: trainer.block(BLOCK_STEPS[kind]) for trainer in order}
            pairs.append((taken[plain], taken[hooked]))
        plain.close()
        hooked.close()
        lines = [json.loads(line) for path in pathlib.Path(directory).glob("*.jsonl") for line in path.open()]
    (bye,) = [line for line in lines if line["k"] == "bye"]
    ratios = sorted(hook / without for without, hook in pairs)
    return {
        "step_ns_without": statistics.median(without for without, _ in pairs),
        "step_ns_with": statistics.median(hook for _, hook in pairs),
        "added_ns": statistics.median(hook - without for without, hook in pairs),
        "ratio": statistics.median(ratios),
        "ratio_quartiles": [ratios[len(ratios) // 4], ratios[3 * len(ratios) // 4]],
        "own_estimate_ns": bye["hook_ns"] / max(bye["steps"], 1),
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
    empty_ns, start_ns = results["empty"]["added_ns"], results["start"]["added_ns"]
    rows = [("hook time a step", f"{empty_ns / 1e3:.1f} us", "20 us", empty_ns <= 20e3)]
    for kind, target in (("1ms", 1.05), ("20ms", 1.01)):
        result = results[kind]
        name = f"step of {result['step_ns_without'] / 1e6:.2f} ms"
        rows.append((name, f"{result['ratio']:.3f}", str(target), result["ratio"] <= target))
    rows.append(("start of Python", f"{start_ns / 1e6:+.2f} ms", "1 ms", start_ns <= 1e6))
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", default=sys.executable, help="an interpreter with torch (default: this one)")
    parser.add_argument("--blocks", type=int, default=40, help="blocks of steps for each of the two (default: 40)")
    parser.add_argument("--json", help="write the figures to this file (-: standard output)")
    parser.add_argument("--check", action="store_true", help="exit with 1 if a target is missed")
    arguments = parser.parse_args()

    results = {kind: measure_steps(arguments.python, kind, arguments.blocks) for kind in BLOCK_STEPS}
    results["start"] = measure_start(arguments.python, arguments.blocks)
    if arguments.json == "-":
        print(json.dumps(results, indent=1))
    elif arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps(results, indent=1) + "\n")
    rows = table(results)
    for name, figure, target, met in rows:
        print(f"{name:<20}{figure:>12}   target {target:<8}{'met' if met else 'MISSED'}", file=sys.stderr)
    return 1 if arguments.check and not all(met for *_, met in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
