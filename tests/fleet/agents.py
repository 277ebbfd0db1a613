"""A real `fullbore agent` on the fake NVML, and processes in control groups like Slurm's for it to find."""

from __future__ import annotations

import json
import os
import pathlib
import re
import subprocess
import time
import urllib.request
from collections.abc import Sequence
from typing import Any

import pytest

from tests.conftest import BINARY, ROOT

FAKE_NVML = ROOT / "build" / "release" / "tests" / "fakes" / "libfake_nvml.so"
SAMPLE = re.compile(r"^(\w+)\{(.*)\} (\S+)$")
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


class Sample:
    def __init__(self, name: str, labels: dict[str, str], value: float) -> None:
        self.name, self.labels, self.value = name, labels, value


class Agent:
    """One that answers."""

    def __init__(self, process: subprocess.Popen, address: str, said: pathlib.Path) -> None:
        self.process, self.address, self.said_file = process, address, said

    @property
    def said(self) -> str:
        return self.said_file.read_text(errors="replace")

    def text(self, path: str = "/metrics", **headers: str) -> str:
        request = urllib.request.Request(f"http://{self.address}{path}", headers=headers)
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.read().decode()

    def samples(self, name: str, **labels: str) -> list[Sample]:
        found = []
        for line in self.text().splitlines():
            matched = SAMPLE.match(line)
            if not matched or matched[1] != name:
                continue
            of = dict(LABEL.findall(matched[2]))
            if labels.items() <= of.items():
                found.append(Sample(name, of, float(matched[3])))
        return found

    def value(self, name: str, **labels: str) -> float:
        (only,) = self.samples(name, **labels)
        return only.value

    def wait_for(self, what, seconds: float = 60) -> Any:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if found := what(self):
                return found
            time.sleep(0.2)
        pytest.fail(f"it did not come; the agent says:\n{self.said}\n{self.text()}")


def start_agent(
    directory: pathlib.Path,
    script: dict[str, Any] | None,
    *flags: str | pathlib.Path,
    listen: str = "127.0.0.1:0",
    prefix: Sequence[str] = (),
    env: dict[str, str] | None = None,
) -> Agent:
    """With the fake NVML of `script`; without one, there is no NVML."""
    if not BINARY.exists() or not FAKE_NVML.exists():
        pytest.skip("the binary or the fake NVML is not built: make build")
    said = directory / "said"
    (directory / "nvml.json").write_text(json.dumps(script))
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("FULLBORE_")},
        "FULLBORE_NVML": str(FAKE_NVML) if script is not None else "/nonexistent/libnvidia-ml.so.1",
        "FULLBORE_FAKE_NVML": str(directory / "nvml.json"),
        **(env or {}),
    }
    command = [*prefix, BINARY, "agent", "--listen", listen, *flags]
    with said.open("w") as log:
        process = subprocess.Popen(command, env=environment, stderr=log, stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and process.poll() is None:
        if found := re.search(r"http://(\S+)/metrics", said.read_text()):
            return Agent(process, found[1], said)
        time.sleep(0.05)
    process.kill()
    process.wait()
    pytest.fail(f"the agent does not start:\n{said.read_text()}")


def end(process: subprocess.Popen) -> None:
    process.kill()
    process.wait()


def sleepers(count: int) -> list[subprocess.Popen]:
    return [subprocess.Popen(["sleep", "600"], stdout=subprocess.DEVNULL) for _ in range(count)]


class Jobs:
    """Control groups as Slurm makes them, and real processes in them."""

    def __init__(self, mount: pathlib.Path) -> None:
        self.scope = mount / "system.slice" / f"test{os.getpid()}_slurmstepd.scope"
        self.scope.mkdir(parents=True)
        self.processes: list[subprocess.Popen] = []

    def put(self, group: str, pid: int) -> None:
        directory = self.scope / group
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "cgroup.procs").write_text(str(pid))

    def start(self, job: str, tasks: int = 1, gpus: str = "") -> list[int]:
        """The pids of its tasks; beside them stands a sleep for slurmstepd."""
        environment = {**os.environ, **({"SLURM_JOB_GPUS": gpus} if gpus else {})}
        pids = []
        for group in ["slurm", *(f"user/task_{i}" for i in range(tasks))]:
            self.processes.append(subprocess.Popen(["sleep", "600"], env=environment))
            self.put(f"{job}/step_0/{group}", self.processes[-1].pid)
            pids.append(self.processes[-1].pid)
        return pids[1:]

    def end(self) -> None:
        for process in self.processes:
            end(process)
        deadline = time.monotonic() + 10
        while self.scope.exists() and time.monotonic() < deadline:
            for directory, _, _ in os.walk(self.scope, topdown=False):
                try:
                    os.rmdir(directory)
                except OSError:
                    time.sleep(0.1)  # a process that has ended is still being taken out of it
