"""What bench/traceml_peer.py and bench/regressions.py measure: a perceptron on random numbers, in a loop of torch's
own. With `--marks`, the loop has the two lines that TraceML asks of a plain loop; with `--slower 0.06`, each step
computes for that part of what it took. (One that slept would lose its core to others, and more than that.)

    training.py --width W --seconds S --clock FILE [--marks] [--slower PART]

The clock's file gets the process's id at once, and at the end the seconds of each step after the first fifth.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import time
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--width", type=int, required=True)
parser.add_argument("--seconds", type=float, required=True)
parser.add_argument("--clock", type=Path, required=True)
parser.add_argument("--marks", action="store_true")
parser.add_argument("--slower", type=float, default=0.0)
given = parser.parse_args()
given.clock.with_suffix(".pid").write_text(str(os.getpid()))

marked = contextlib.nullcontext
if given.marks:
    import traceml_ai

    traceml_ai.init(mode="auto")
    marked = traceml_ai.trace_step

torch.manual_seed(0)
width = given.width
model = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
loader = DataLoader(TensorDataset(torch.randn(2048, width), torch.arange(2048) % 10), batch_size=32, shuffle=True)

times: list[float] = []
begin = last = time.perf_counter()
while last - begin < given.seconds:
    for values, labels in loader:
        with marked(model):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(values), labels).backward()
            optimizer.step()
            if given.slower > 0:
                until = time.perf_counter() + given.slower * (time.perf_counter() - last)
                while time.perf_counter() < until:
                    pass
        now = time.perf_counter()
        times.append(now - last)
        last = now
given.clock.write_text(json.dumps(times[len(times) // 5 :]))
