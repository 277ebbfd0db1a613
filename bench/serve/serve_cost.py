#!/usr/bin/env python3
"""What `fullbore serve` costs: following live runs, a page that is open on one, and listing many runs.

    bench/serve/serve_cost.py [--live 20] [--past 3600] [--cores 32] [--seconds 60] [--runs 10000]

Processor time is the kernel's count of the server's own process over SECONDS, after as long for it to settle; memory is
the most it ever had. Listing is the wall time of one request, median of five; `new` reads every run file, `known` is
with the index that the first server left. The peer is what a scan costs: `fullbore runs --json` on the same directory.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import tempfile
import threading
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = pathlib.Path(os.environ.get("FULLBORE_BINARY", ROOT / "build" / "release" / "fullbore"))
MADE_RUNS = ROOT / "build" / "release" / "src" / "watch" / "made_runs"


QUERIES = {
    "page": "?limit=200",
    "all": "?limit=10000",
    "filtered": "?q=tag:lr%3D3e-4&sort=-waste&limit=200",
}


class Server:
    def __init__(self, directory: pathlib.Path) -> None:
        command = [BINARY, "serve", "--listen", "127.0.0.1:0", "--dir", directory]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        self.address = self.process.stderr.readline().split("http://")[1].split("/")[0]

    def ask(self, path: str) -> bytes:
        with urllib.request.urlopen(f"http://{self.address}{path}", timeout=600) as answer:
            return answer.read()

    def cpu_s(self) -> float:
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(") ", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def most_memory_mb(self) -> float:
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split("VmHWM:")[1].split()[0]) / 1000

    def of_a_core(self, seconds: float) -> float:
        before = self.cpu_s()
        time.sleep(seconds)
        return (self.cpu_s() - before) / seconds

    def end(self) -> None:
        self.process.terminate()
        self.process.wait()


def seconds_of(what) -> float:
    begin = time.monotonic()
    what()
    return time.monotonic() - begin


def live_cost(directory: pathlib.Path, flags: argparse.Namespace) -> dict[str, float]:
    arguments = [directory, "bench", 0, flags.live, 10 * flags.seconds + 600, flags.past, flags.cores]
    making = subprocess.Popen([MADE_RUNS, *map(str, arguments)], stdout=subprocess.PIPE, text=True)
    making.stdout.readline()
    server = Server(directory)
    time.sleep(flags.seconds)
    result = {"live": flags.live, "past_s": flags.past, "of_a_core": server.of_a_core(flags.seconds)}

    def read_events() -> None:
        with urllib.request.urlopen(f"http://{server.address}/api/v1/runs/bench-live-0/events") as events:
            for line in events:
                if line.startswith(b"data:") and json.loads(line[5:])["judged_steps"] != seen[0]:
                    seen[0] = json.loads(line[5:])["judged_steps"]
                    server.ask("/api/v1/runs/bench-live-0/page")

    seen = [None]
    threading.Thread(target=read_events, daemon=True).start()
    result["with_a_page_open"] = server.of_a_core(flags.seconds)
    result["memory_mb"] = server.most_memory_mb()
    server.end()
    making.kill()
    making.wait()
    return result


def list_cost(directory: pathlib.Path, runs: int) -> dict[str, float]:
    subprocess.run([MADE_RUNS, directory, "bench", "1", "0", "0"], check=True, stdout=subprocess.DEVNULL)
    for i in range(1, runs):
        shutil.copy(directory / "bench-0.fbr", directory / f"bench-{i}.fbr")
    result = {"runs": runs}
    for index in ("new", "known"):
        server = Server(directory)
        result[f"ready_{index}_s"] = seconds_of(lambda of=server: of.ask("/healthz"))
        for name, query in QUERIES.items():
            times = [seconds_of(lambda of=server, query=query: of.ask("/api/v1/runs" + query)) for _ in range(5)]
            result[f"list_{name}_{index}_s"] = statistics.median(times)
        server.end()
    scan = [BINARY, "runs", "-o", directory, "--json", "-"]
    result["scan_s"] = seconds_of(lambda: subprocess.run(scan, stdout=subprocess.DEVNULL, check=True))
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--live", type=int, default=20)
    parser.add_argument("--past", type=int, default=3600)
    parser.add_argument("--cores", type=int, default=32)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--runs", type=int, default=10_000)
    flags = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        if flags.live:
            print(json.dumps(live_cost(pathlib.Path(directory) / "live", flags)), flush=True)
        if flags.runs:
            (pathlib.Path(directory) / "many").mkdir()
            print(json.dumps(list_cost(pathlib.Path(directory) / "many", flags.runs)), flush=True)


if __name__ == "__main__":
    main()
