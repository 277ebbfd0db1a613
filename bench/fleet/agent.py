#!/usr/bin/env python3
"""What `fullbore agent` takes of a core and of memory, with the eight GPUs of a fake NVML and real processes on them.

    bench/fleet/agent.py [--processes 200] [--minutes 4] [--every 15]

Processor time is the kernel's count of the agent's own process after a minute of settling, with a scrape every 15 s as
Prometheus makes it; memory is the most that it ever had. NVML's own cost is not in it: the fake answers at once.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import subprocess
import tempfile
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "release"
GPUS = 8


class Agent:
    def __init__(self, script: pathlib.Path) -> None:
        fake = {"FULLBORE_NVML": f"{BUILD}/tests/fakes/libfake_nvml.so", "FULLBORE_FAKE_NVML": str(script)}
        command = [BUILD / "fullbore", "agent", "--listen", "127.0.0.1:0"]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env={**os.environ, **fake})
        self.address = self.process.stderr.readline().split("http://")[1].split("/")[0]

    def scrape(self) -> str:
        with urllib.request.urlopen(f"http://{self.address}/metrics", timeout=60) as answer:
            return answer.read().decode()

    def cpu_s(self) -> float:
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(") ", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory_mb(self, what: str) -> float:
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split(what + ":")[1].split()[0]) / 1000


def scrape_for(agent: Agent, seconds: float, every: float) -> tuple[float, list[float]]:
    """Of a core, and how long each scrape took."""
    begin, before, took = time.monotonic(), agent.cpu_s(), []
    while time.monotonic() - begin < seconds:
        asked = time.monotonic()
        agent.scrape()
        took.append(time.monotonic() - asked)
        time.sleep(max(0.0, every - took[-1]))
    return (agent.cpu_s() - before) / (time.monotonic() - begin), took


def measure(flags: argparse.Namespace, directory: pathlib.Path) -> dict[str, float]:
    sleepers = [subprocess.Popen(["sleep", "86400"]) for _ in range(flags.processes)]
    try:
        pids = [each.pid for each in sleepers]
        gpus = [{"processes": [{"pid": pid, "sm": 30} for pid in pids[i::GPUS]]} for i in range(GPUS)]
        (directory / "nvml.json").write_text(json.dumps({"gpus": gpus}))
        agent = Agent(directory / "nvml.json")
        scrape_for(agent, 60, flags.every)
        share, took = scrape_for(agent, flags.minutes * 60, flags.every)
        page = agent.scrape()
        result = {
            "of_a_core": round(share, 5),
            "memory_mb": agent.memory_mb("VmRSS"),
            "most_memory_mb": agent.memory_mb("VmHWM"),
            "slowest_scrape_ms": round(1000 * max(took), 1),
            "series": sum(not line.startswith("#") for line in page.splitlines()),
            "bytes": len(page),
        }
        agent.process.terminate()
        agent.process.wait()
        return result
    finally:
        for each in sleepers:
            each.kill()
            each.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", type=int, default=200)
    parser.add_argument("--minutes", type=float, default=4)
    parser.add_argument("--every", type=float, default=15)
    flags = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="fullbore-agent-") as directory:
        print(json.dumps({**vars(flags), **measure(flags, pathlib.Path(directory))}))


if __name__ == "__main__":
    main()
