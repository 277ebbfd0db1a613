#!/usr/bin/env python3
"""What `fullbore run` costs the training, each figure against its target.

  step time ratio  the same training with and without fullbore, steps of about 1 ms and 20 ms (targets: 1.05, 1.01)
  recorder         CPU of one core (target: 1 %) and memory (target: 64 MB) at default rates, with 8 fake GPUs and
                   200 processes
  run file         an hour with 8 GPUs (target: 2 MB), from bench/overhead/run_size.cc and this machine's series

Two processes take turns, a block of steps each, so that a noisy machine disturbs both alike: the ratio is the median
over pairs of neighbouring blocks. During the plain one's turn, our recorder is stopped.

    bench/overhead.py [--python PYTHON] [--blocks N] [--seconds N] [--json FILE] [--check]
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import time

from hook_cost import clean_environment

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILD = ROOT / "build" / "release"
FULLBORE = BUILD / "fullbore"
TARGETS = {"ratio_1ms": 1.05, "ratio_20ms": 1.01, "cpu_ratio": 0.01, "resident_bytes": 64e6, "bytes_an_hour": 2e6}
PROCESSES = 200


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


class RecordedTrainer(Trainer):
    """The trainer under `fullbore run`; the recorder is stopped between its turns."""

    def __init__(self, python: str, kind: str, directory: str) -> None:
        self.process = subprocess.Popen(
            [FULLBORE, "run", "-q", "-o", directory, "--", python, "-c", TRAINER, kind],
            env={**clean_environment(), "OMP_NUM_THREADS": "1"},
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        if self.process.stdout.readline() != "ready\n":
            raise SystemExit(f"{python} could not train: see above\nhint: --python with an interpreter that has torch")
        self.process.send_signal(signal.SIGSTOP)

    def block(self, steps: int) -> float:
        self.process.send_signal(signal.SIGCONT)
        try:
            return super().block(steps)
        finally:
            self.process.send_signal(signal.SIGSTOP)

    def close(self) -> None:
        self.process.send_signal(signal.SIGCONT)
        super().close()


def measure_ratio(python: str, kind: str, blocks: int) -> dict:
    with tempfile.TemporaryDirectory() as directory:
        plain = Trainer(python, kind, clean_environment())
        recorded = RecordedTrainer(python, kind, directory)
        pairs = []
        for index in range(blocks):
            order = (plain, recorded) if index % 2 == 0 else (recorded, plain)
            taken = {trainer: trainer.block(BLOCK_STEPS[kind]) for trainer in order}
            pairs.append((taken[plain], taken[recorded]))
        plain.close()
        recorded.close()
    ratios = sorted(with_us / without for without, with_us in pairs)
    return {
        "step_ns_without": statistics.median(without for without, _ in pairs),
        "step_ns_with": statistics.median(with_us for _, with_us in pairs),
        "ratio": statistics.median(ratios),
        "ratio_quartiles": [ratios[len(ratios) // 4], ratios[3 * len(ratios) // 4]],
    }


def fake_gpus() -> dict:
    library = BUILD / "tests" / "fakes" / "libfake_nvml.so"
    if not library.exists():
        raise SystemExit(f"'{library}' does not exist\nhint: make build")
    return {"FULLBORE_NVML": str(library), "FULLBORE_FAKE_NVML": str(ROOT / "tests/fakes/nvml/eight_h100.json")}


def cpu_s(pid: int) -> float:
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def highest_resident_bytes(pid: int) -> int:
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) * 1024
    raise RuntimeError("no VmHWM")


def measure_recorder(seconds: int) -> dict:
    with tempfile.TemporaryDirectory() as directory:
        stop = pathlib.Path(directory) / "stop"
        code = f"for i in $(seq {PROCESSES}); do sleep 3600 & done; while [ ! -e {stop} ]; do sleep 0.5; done; kill 0"
        process = subprocess.Popen(
            [FULLBORE, "run", "-q", "-o", directory, "--", "setsid", "--wait", "sh", "-c", code],
            env={**clean_environment(), **fake_gpus()},
        )
        time.sleep(5)  # until the processes run and the first blocks are full
        begin, begin_cpu = time.monotonic(), cpu_s(process.pid)
        time.sleep(seconds)
        took, cpu = time.monotonic() - begin, cpu_s(process.pid) - begin_cpu
        resident = highest_resident_bytes(process.pid)
        stop.touch()
        process.wait()
    return {"cpu_ratio": cpu / took, "resident_bytes": resident, "seconds": took}


def measure_size() -> dict:
    with tempfile.TemporaryDirectory() as directory:
        done = subprocess.run(
            [BUILD / "bench" / "run_size", directory],
            env={**clean_environment(), **fake_gpus()},
            capture_output=True,
            text=True,
            check=True,
        )
    return json.loads(done.stdout)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--blocks", type=int, default=60)
    parser.add_argument("--seconds", type=int, default=30, help="how long the recorder is measured")
    parser.add_argument("--json", help="write the figures to this file")
    parser.add_argument("--check", action="store_true", help="exit with 1 if a target is missed")
    flags = parser.parse_args()

    said = {
        "size": measure_size(),
        "recorder": measure_recorder(flags.seconds),
        "1ms": measure_ratio(flags.python, "1ms", flags.blocks),
        "20ms": measure_ratio(flags.python, "20ms", flags.blocks),
    }
    figures = {
        "ratio_1ms": said["1ms"]["ratio"],
        "ratio_20ms": said["20ms"]["ratio"],
        "cpu_ratio": said["recorder"]["cpu_ratio"],
        "resident_bytes": said["recorder"]["resident_bytes"],
        "bytes_an_hour": said["size"]["bytes"],
    }
    shown = {
        "ratio_1ms": "step time with / without, 1 ms steps  {:.4f}",
        "ratio_20ms": "step time with / without, 20 ms steps {:.4f}",
        "cpu_ratio": "recorder, share of one core           {:.4f}",
        "resident_bytes": "recorder, memory                      {:.3g} bytes",
        "bytes_an_hour": "run file, an hour with 8 GPUs         {:.3g} bytes",
    }
    missed = [name for name, value in figures.items() if value > TARGETS[name]]
    for name, text in shown.items():
        print(text.format(figures[name]), f"  target {TARGETS[name]:g}", "  MISSED" if name in missed else "")
    for name, probe in sorted(said["size"]["probes"].items(), key=lambda item: -item[1]["bytes"]):
        if probe["bytes"]:
            print(f"  {name:12} {probe['series']:4} series {probe['bytes']:9} bytes an hour")
    print("  " + "  ".join(f"{table} {size} bytes" for table, size in said["size"]["tables"].items()))
    if flags.json:
        pathlib.Path(flags.json).write_text(json.dumps({"figures": figures, "targets": TARGETS, **said}, indent=2))
    return 1 if missed and flags.check else 0


if __name__ == "__main__":
    sys.exit(main())
