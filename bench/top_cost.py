"""What `fullbore top` takes of a core, beside nvitop (PyPI) where that is installed and finds a GPU: CPU time of the
process over its wall time, on a terminal of 120 x 40, in turns, medians.

    .venv/bin/python bench/top_cost.py [SECONDS]
"""

from __future__ import annotations

import fcntl
import os
import pty
import resource
import select
import shutil
import signal
import struct
import sys
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


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 20
    commands = {"fullbore top": [str(ROOT / "build/release/fullbore"), "top"]}
    if found := shutil.which("nvitop") or shutil.which("nvitop", path=os.path.dirname(sys.executable)):
        commands["nvitop"] = [found, "--monitor"]
    costs: dict[str, list[float | None]] = {name: [] for name in commands}
    for _ in range(ROUNDS):
        for name, command in commands.items():
            costs[name].append(cost(command, seconds))
    for name, values in costs.items():
        known = [value for value in values if value is not None]
        print(f"{name:14}{100 * median(known):6.2f} % of a core" if known else f"{name:14}ended by itself")


if __name__ == "__main__":
    main()
