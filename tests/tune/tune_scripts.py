"""What the tests of `fullbore measure`, `tune` and `compare` share."""

from __future__ import annotations

import hashlib
import pathlib
import subprocess
import time

MOST_S = 420  # of any answer, with the longest budget that is waited for

METRIC = ("--metric", "([0-9.]+) img/s", "--budget", "3m")  # of PRINTS

# Prints a throughput that depends on its argument alone, for as long as it is let.
PRINTS = """
import sys, time
for step in range(100_000):
    time.sleep(0.02)
    print(f"step {step}: {float(sys.argv[1]) * 10} img/s")
"""

# A training that waits for its data: each sample sleeps, so that workers help on any machine.
WAITS = """
import time, torch
from torch import nn

class Slow(torch.utils.data.Dataset):
    def __len__(self):
        return 100_000

    def __getitem__(self, index):
        time.sleep(0.004)
        return torch.full((16,), float(index % 7)), index % 4

if __name__ == "__main__":
    torch.set_num_threads(1)
    model = nn.Linear(16, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = torch.utils.data.DataLoader(Slow(), batch_size=4, num_workers=0)
    for step, (x, y) in enumerate(loader):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        if step % 10 == 0:
            torch.save(model.state_dict(), "checkpoint.pt")
            with open("log.txt", "a") as log:
                log.write(f"{step}\\n")
"""

# Validates in every so many steps, for as long as many of them take.
VALIDATES = """
import sys, torch
every = int(sys.argv[1])
model = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.ReLU(), torch.nn.Linear(256, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
x = torch.randn(512, 256)
step = 0
while True:
    optimizer.zero_grad()
    model(x).mean().backward()
    optimizer.step()
    step += 1
    if step % every == 0:
        model.eval()
        with torch.no_grad():
            for _ in range(400):
                model(x)
        model.train()
"""

# A training on what a server sends, which goes on whether somebody reads it or not; a little faster than that comes. It
# is blocked while it waits, or asks again and again.
STREAMS = """
import socket, sys, time, torch
torch.set_num_threads(1)
port, how, work_s = int(sys.argv[1]), sys.argv[2], float(sys.argv[3])

def received(stream, most):
    try:
        return len(stream.recv(most))
    except BlockingIOError:
        return 0

class Sent(torch.utils.data.IterableDataset):
    def __iter__(self):
        stream = socket.create_connection(("127.0.0.1", port))
        stream.setblocking(how == "blocks")
        while True:
            left = 4096
            while left:
                left -= received(stream, left)
            yield torch.rand(8, 4), torch.arange(8) % 2

def work():
    if how == "blocks":
        return time.sleep(work_s)
    until = time.perf_counter() + work_s
    while time.perf_counter() < until:
        pass

model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in torch.utils.data.DataLoader(Sent(), batch_size=None):
    work()
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
"""


def tree(directory: pathlib.Path) -> dict[str, str]:
    """Every file below a directory, but for our own store, and what is in it."""
    return {
        str(path.relative_to(directory)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(directory.rglob("*"))
        if path.is_file() and ".fullbore" not in path.parts
    }


def listed(word: str) -> list[str]:
    """State and command line of the processes whose command line contains a word."""
    lines = subprocess.run(["ps", "-eo", "stat,args"], capture_output=True, text=True).stdout.splitlines()
    return [line for line in lines if word in line and not line.startswith("Z")]


def processes_with(word: str) -> list[str]:
    """The same, after those that were ended had a moment to go."""
    for _ in range(50):
        if not listed(word):
            return []
        time.sleep(0.1)
    return listed(word)


def whole_runs(baseline: float, candidate: float) -> dict:
    """A pair of the answer, of two that ran one after the other."""
    return {"baseline": baseline, "candidate": candidate, "in_slices": False}
