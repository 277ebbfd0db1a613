"""A planted case: a training script whose header says what is wrong with it and what the report must say.

The header is the script's docstring, one `KEY  value` per line:

    NAME     what a person would call it
    PLANTED  what is actually done, and where the time goes
    EXPECT   id and cause of the first finding; * for any
    NEVER    a change that no finding may recommend with a gain: it would make the program slower
    TRUTH    the name under which the script timed what it planted; `all but NAME` where it timed the rest
    FIX      the setting of the script that the recommended change concerns: num_workers or a switch (bench/accuracy)
    LINE     text of the source line that the finding must name first
    RANK     the rank that the finding must name
    WINDOWS  when steps are taken under the profiler, N@STEP (never)
    WARMUP   how many steps are warm-up
    LAUNCH   arguments between the interpreter and the script
    NEEDS    two-cores, memory-cgroup, jax
    MEMORY   limit of the memory cgroup, MB
    TIMEOUT  seconds for one run (180: a hang, on any machine)
"""

from __future__ import annotations

import ast
import contextlib
import importlib.util
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]
CASES = Path(__file__).parent / "cases"
FULLBORE = Path(os.environ.get("FULLBORE", ROOT / "build/release/fullbore"))
MEMORY_GROUPS = Path("/sys/fs/cgroup/memory")
# Neighbours on a shared machine take cores whenever they like; if permitted, the runs get priority. The kernel weighs
# sessions against each other before it looks at a process's own priority (sched(7), autogroup).
PRIORITY = -19


@dataclass
class Case:
    script: Path
    header: dict[str, str]

    @property
    def name(self) -> str:
        return self.script.stem

    def __getitem__(self, key: str) -> str:
        return self.header.get(key, "")

    def missing(self) -> str:
        """Why this machine cannot run the case; empty if it can."""
        for need in self["NEEDS"].split():
            if need == "two-cores" and len(os.sched_getaffinity(0)) < 2:
                return "needs two cores"
            if need == "jax" and importlib.util.find_spec("jax") is None:
                return "needs JAX"
            if need.startswith("python-") and importlib.util.find_spec(need.removeprefix("python-")) is None:
                return f"needs the package {need.removeprefix('python-')}"
            if need == "memory-cgroup" and not os.access(MEMORY_GROUPS / "memory.limit_in_bytes", os.W_OK):
                return f"needs a writable memory cgroup: {MEMORY_GROUPS} (root, cgroup v1)"
        return ""


def read_case(script: Path) -> Case | None:
    text = ast.get_docstring(ast.parse(script.read_text())) or ""
    header = dict(re.findall(r"^([A-Z]+) +(.+)$", text, re.MULTILINE))
    return Case(script, header) if "EXPECT" in header else None


def all_cases() -> list[Case]:
    return [case for case in map(read_case, sorted(CASES.glob("*.py"))) if case]


@dataclass
class Truth:
    """What a script measured with its own clock."""

    steps: list[dict[str, float]]

    def share(self, name: str, since: int) -> float:
        steps = self.steps[since:]
        timed = name.removeprefix("all but ")
        share = sum(step.get(timed, 0.0) for step in steps) / sum(step["wall"] for step in steps)
        return share if timed == name else 1 - share


@dataclass
class Outcome:
    truth: Truth
    report: dict = field(default_factory=dict)

    @property
    def first(self) -> dict:
        return self.report["findings"][0]

    @property
    def warmup(self) -> int:
        return self.report["window"]["warmup_steps"]

    def says(self) -> str:
        """The findings, one per line, for a failed test."""
        return "\n".join(
            f"{f['id']} {f.get('cause', '')} {f.get('share', 0):.3f} {f.get('speedup', '')}: {f['title']}"
            for f in self.report["findings"]
        )


@contextlib.contextmanager
def memory_limit(megabytes: str) -> Iterator[list[str]]:
    """The prefix that runs a command in a separate cgroup."""
    if not megabytes:
        yield []
        return
    group = MEMORY_GROUPS / f"planted-{os.getpid()}"
    group.mkdir()
    try:
        (group / "memory.limit_in_bytes").write_text(str(int(megabytes) << 20))
        enter = f'echo $$ > {shlex.quote(str(group / "cgroup.procs"))} && exec "$@"'
        yield ["sh", "-c", enter, "sh"]
    finally:
        until = time.monotonic() + 20  # processes that have just ended stay in it for a moment
        while not is_removed(group) and time.monotonic() < until:
            time.sleep(0.05)


def is_removed(group: Path) -> bool:
    try:
        group.rmdir()
    except OSError:
        return False
    return True


def end(process: subprocess.Popen) -> None:
    """Asked before it is killed: ranks have sessions of their own, and torchrun ends them only if it can."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=30)


def go_first() -> None:
    with contextlib.suppress(OSError):
        Path("/proc/self/autogroup").write_text(str(PRIORITY))
        os.setpriority(os.PRIO_PROCESS, 0, PRIORITY)


class Laboratory:
    """Records cases, with the tests' interpreter."""

    def __init__(self, photos: Path, scratch: Path) -> None:
        self.photos = photos
        self.scratch = scratch
        self.runs = 0

    def run(self, case: Case, *more: str) -> Outcome:
        """`more`: arguments of the script."""
        self.runs += 1
        truth, report = self.scratch / f"truth{self.runs}.json", self.scratch / f"report{self.runs}.json"
        launch = case["LAUNCH"].split()
        files = ["--truth", truth, "--photos", self.photos, "--scratch", self.scratch]
        files += more
        with memory_limit(case["MEMORY"]) as inside:
            runs = ["-o", self.scratch / "runs", "--json", report, "--quiet", "--windows", case["WINDOWS"] or "off"]
            command = [FULLBORE, "run", *runs, "--", *inside, sys.executable, *launch, case.script, *files]
            environment = {k: v for k, v in os.environ.items() if not k.startswith("FULLBORE_")}
            result = subprocess.run(
                [str(part) for part in command],
                env={**environment, "OMP_NUM_THREADS": "1"},
                capture_output=True,
                text=True,
                timeout=int(case["TIMEOUT"] or 180),
                start_new_session=True,
                preexec_fn=go_first,
            )
        assert result.returncode == 0, result.stderr
        steps = json.loads(truth.read_text())["steps"]
        return Outcome(Truth(steps), json.loads(report.read_text()))

    def attach(self, case: Case, seconds: int) -> dict:
        """The report on the case as a training that runs without us and is looked at from outside."""
        self.runs += 1
        report = self.scratch / f"attached{self.runs}.json"
        beside = os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", "")])
        with self.training(case) as pid:
            explain = [FULLBORE, "explain", "--pid", pid, "--for", f"{seconds}s", "--quiet"]
            explain += ["-o", self.scratch / "runs", "--json", report]
            result = subprocess.run(
                [str(part) for part in explain],
                env={**os.environ, "PATH": beside},
                capture_output=True,
                text=True,
                timeout=seconds + 60,
                start_new_session=True,
                preexec_fn=go_first,  # a sampler behind the training would see it where it waits
            )
        assert result.returncode == 0, result.stderr
        return json.loads(report.read_text())

    @contextlib.contextmanager
    def training(self, case: Case) -> Iterator[int]:
        """The process of the case as it trains without end; it has taken a step."""
        started = self.scratch / f"started{self.runs}"
        files = ["--truth", os.devnull, "--photos", self.photos, "--scratch", self.scratch, "--steps", "1000000"]
        environment = {k: v for k, v in os.environ.items() if not k.startswith("FULLBORE_")}
        environment |= {"OMP_NUM_THREADS": "1", "PLANTED_STARTED": str(started)}
        with memory_limit(case["MEMORY"]) as inside:
            command = [*inside, sys.executable, *case["LAUNCH"].split(), case.script, *files]
            process = subprocess.Popen(
                [str(part) for part in command],
                env=environment,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                preexec_fn=go_first,
            )
            try:
                until = time.monotonic() + 120
                while not started.exists():
                    assert process.poll() is None and time.monotonic() < until, f"{case.name} took no step"
                    time.sleep(0.1)
                yield process.pid
            finally:
                end(process)
