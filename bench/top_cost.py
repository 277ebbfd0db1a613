#!/usr/bin/env python3
"""What `fullbore top` takes of a core, beside nvitop (PyPI) where that is installed: CPU time of the process over its
wall time, on a terminal of 120 x 40, in turns, medians. Without a GPU, both are shown the eight of tests/fakes/nvml.

    python3 -m venv /some/where && /some/where/bin/pip install nvitop
    PATH=/some/where/bin:$PATH bench/top_cost.py [SECONDS] [--fake-gpus]
"""

from __future__ import annotations

import argparse
import fcntl
import os
import pty
import resource
import select
import shutil
import signal
import struct
import tempfile
import termios
import time
from pathlib import Path
from statistics import median

ROOT = Path(__file__).parents[1]
ROUNDS = 3


def cost(command: list[str], seconds: float) -> float | None:
    """Of a core; nothing where it ended by itself."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    pid, fd = pty.fork()
    if pid == 0:
        os.environ["TERM"] = "xterm-256color"
        os.execvp(command[0], command)
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    begin = time.monotonic()
    ended = False
    while time.monotonic() - begin < seconds and not ended:
        if select.select([fd], [], [], 0.1)[0]:
            try:
                ended = not os.read(fd, 65536)
            except OSError:
                ended = True
    wall = time.monotonic() - begin
    os.kill(pid, signal.SIGTERM)
    os.close(fd)
    os.waitpid(pid, 0)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return None if ended else used / wall


def show_fake_gpus(folder: Path) -> None:
    """To every program that loads NVML by its usual name."""
    fake = ROOT / "build/release/tests/fakes/libfake_nvml.so"
    (folder / "libnvidia-ml.so.1").symlink_to(fake)
    os.environ["FULLBORE_NVML"] = str(fake)
    os.environ["FULLBORE_FAKE_NVML"] = str(ROOT / "tests/fakes/nvml/eight_h100.json")
    os.environ["LD_LIBRARY_PATH"] = str(folder)


def compare(seconds: float) -> None:
    commands = {"fullbore top": [str(ROOT / "build/release/fullbore"), "top"]}
    if found := shutil.which("nvitop"):
        commands["nvitop"] = [found, "--monitor"]
    costs: dict[str, list[float | None]] = {name: [] for name in commands}
    for _ in range(ROUNDS):
        for name, command in commands.items():
            costs[name].append(cost(command, seconds))
    for name, values in costs.items():
        known = [value for value in values if value is not None]
        print(f"{name:14}{100 * median(known):6.2f} % of a core" if known else f"{name:14}ended by itself")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("seconds", type=float, nargs="?", default=20)
    parser.add_argument("--fake-gpus", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="fullbore-top-") as folder:
        if given.fake_gpus:
            show_fake_gpus(Path(folder))
        compare(given.seconds)


if __name__ == "__main__":
    main()
