#!/usr/bin/env python3
"""What watching a training costs, beside TraceML (PyPI) where that is installed: the same script, in turns.

  pip install --target /some/where 'traceml-ai[dashboard]'
  bench/traceml_peer.py [--traceml /some/where] [--seconds 15] [--rounds 3] [--json FILE]

a step         the script's own step time, over that of the same script alone: `fullbore run`, and `traceml run`
               with the two lines in the loop that it asks for; medians of turns, at two lengths of a step
a page open    CPU time of all that is not the training, as a part of a core, while a browser shows the live page:
               recorder and `fullbore serve`, and TraceML's launcher and its dashboard. The browser's is not counted.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import mean, median

ROOT = Path(__file__).resolve().parents[1]
FULLBORE = ROOT / "build/release/fullbore"
TRAINING = ROOT / "bench/traceml_peer/training.py"
WIDTHS = (160, 1200)  # of the model: steps of about 1 and 10 ms on a core of 2023
DASHBOARD_PORT = 18765
SETTLE_S = 10  # a page and a server have started


def traceml(site: Path, *arguments: str) -> list[str]:
    return [sys.executable, str(site / "bin/traceml"), "run", *arguments]


class Script:
    """One run of the training, as it is or under a tool."""

    def __init__(self, folder: Path, width: int, seconds: float, site: Path | None) -> None:
        self.clock = folder / "clock.json"
        self.pid_file = self.clock.with_suffix(".pid")
        self.arguments = ["--width", str(width), "--seconds", str(seconds), "--clock", str(self.clock)]
        self.folder, self.site = folder, site

    def command(self, tool: str, *options: str) -> list[str]:
        alone = [sys.executable, str(TRAINING), *self.arguments]
        if tool == "fullbore":
            return [str(FULLBORE), "run", "-o", str(self.folder / "runs"), "--quiet", *options, "--", *alone]
        if tool == "traceml":
            options = ("--logs-dir", str(self.folder / "logs"), *options)
            return [*traceml(self.site, *options), str(TRAINING), "--args", *self.arguments, "--marks"]
        return alone

    def start(self, tool: str, *options: str) -> subprocess.Popen:
        for left in (self.clock, self.pid_file):
            left.unlink(missing_ok=True)
        environment = {k: v for k, v in os.environ.items() if not k.startswith("FULLBORE_")}
        if tool == "traceml":
            environment["PYTHONPATH"] = str(self.site)
        return subprocess.Popen(
            self.command(tool, *options),
            env={**environment, "OMP_NUM_THREADS": "1"},
            cwd=self.folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def step_s(self, tool: str) -> float:
        process = self.start(tool)
        said = process.communicate()[1]
        if process.returncode != 0 or not self.clock.exists():
            sys.exit(f"{tool} could not train:\n{said[-2000:]}")
        return mean(json.loads(self.clock.read_text()))


def step_costs(tools: list[str], folder: Path, flags: argparse.Namespace) -> list[dict]:
    rows = []
    for width in flags.widths:
        script = Script(folder, width, flags.seconds, flags.traceml)
        taken: dict[str, list[float]] = {tool: [] for tool in ("alone", *tools)}
        for _ in range(flags.rounds):
            for tool, steps in taken.items():
                steps.append(script.step_s(tool))
        alone = median(taken["alone"])
        ratios = {tool: median(a / b for a, b in zip(taken[tool], taken["alone"])) for tool in tools}
        added = {tool: 1e6 * (median(taken[tool]) - alone) for tool in tools}
        rows.append({"step_ms": 1e3 * alone, "ratio": ratios, "added_us": added, "seconds": taken})
    return rows


def processes_below(pid: int) -> Iterator[int]:
    yield pid
    with contextlib.suppress(OSError):
        for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
            yield from processes_below(int(child))


def cpu_s(pids: set[int]) -> float:
    total = 0.0
    for pid in pids:
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1].split()
            total += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return total


@contextlib.contextmanager
def browser_at(url: str, folder: Path) -> Iterator[None]:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if not chromium:
        sys.exit("no Chromium is here: apt-get install chromium")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0"]
    shown = subprocess.Popen(
        [chromium, *options, f"--user-data-dir={folder / 'profile'}", url],
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield
    finally:
        os.killpg(shown.pid, signal.SIGKILL)
        shown.wait()


def page_cost(tool: str, folder: Path, flags: argparse.Namespace) -> float:
    """Of a core, of all that the tool started and that does not train."""
    script = Script(folder, flags.widths[-1], 3 * SETTLE_S + flags.seconds, flags.traceml)
    if tool == "traceml":
        options = ["--mode", "dashboard", "--dashboard-port", str(DASHBOARD_PORT), "--no-dashboard-auto-open"]
        training, url = script.start(tool, *options), f"http://127.0.0.1:{DASHBOARD_PORT}/"
        roots = [training.pid]
    else:
        training = script.start(tool, "--run", "bench-page")
        serve = [FULLBORE, "serve", "--listen", "127.0.0.1:0", "--dir", folder / "runs"]
        server = subprocess.Popen([str(part) for part in serve], stderr=subprocess.PIPE, text=True)
        url = f"http://{server.stderr.readline().split('http://')[1].split('/')[0]}/runs/bench-page"
        roots = [training.pid, server.pid]
    try:
        while not script.pid_file.exists():
            time.sleep(0.1)
        time.sleep(SETTLE_S)
        trains = set(processes_below(int(script.pid_file.read_text())))
        with browser_at(url, folder):
            time.sleep(SETTLE_S)
            ours = {pid for root in roots for pid in processes_below(root)} - trains
            before = cpu_s(ours)
            time.sleep(flags.seconds)
            return (cpu_s(ours) - before) / flags.seconds
    finally:
        os.killpg(training.pid, signal.SIGINT)
        training.wait()
        if tool == "fullbore":
            server.terminate()
            server.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--traceml", type=Path, metavar="FOLDER", help="where TraceML was installed")
    parser.add_argument("--seconds", type=float, default=15)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--widths", type=int, nargs="+", default=list(WIDTHS))
    parser.add_argument("--json", type=Path)
    flags = parser.parse_args()
    tools = ["fullbore", *(["traceml"] if flags.traceml else [])]
    with tempfile.TemporaryDirectory(prefix="fullbore-peer-") as folder:
        steps = step_costs(tools, Path(folder), flags)
        pages = {tool: page_cost(tool, Path(folder), flags) for tool in tools}
    for row in steps:
        for tool in tools:
            print(
                f"{tool:10} a step of {row['step_ms']:.2f} ms: {row['ratio'][tool]:.3f} of it "
                f"({row['added_us'][tool]:+.0f} us)"
            )
    for tool, cost in pages.items():
        print(f"{tool:10} with a page open: {100 * cost:.2f} % of a core")
    if not flags.traceml:
        print("TraceML was not measured: --traceml says where it is installed (see --help)")
    if flags.json:
        flags.json.write_text(json.dumps({"steps": steps, "pages": pages}, indent=1) + "\n")


if __name__ == "__main__":
    main()
