"""Runs a case's program: recorded by fullbore, with what its own clock said, and in turns with a changed one."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import mean, median

from .case import Case, Change

ROOT = Path(__file__).resolve().parents[3]
FULLBORE = Path(os.environ.get("FULLBORE", ROOT / "build/release/fullbore"))
PYTHON_PACKAGE = ROOT / "build/release/python"  # with the engine that fullbore.data needs
SINCE = 8  # steps before a planted case counts as steady; generated programs leave out their own warm-up
FEWEST_STEPS = 5
# How long a program that is measured in turns would train: until it is ended.
ENDLESS = {"seconds": 3600, "steps": 1_000_000}
SPARE_S = 180  # beyond its budget, until a comparison that does not end has failed
# Python's end cuts off a program's daemon thread inside torch, which aborts the process when all is done and written.
TORN_DOWN = "terminate called without an active exception"
# What whoever starts the exam may have set, and what would change every program.
LEFT_OUT = ("FULLBORE_", "OMP_", "MKL_", "PYTHONPATH", "TORCH_")


class Failed(Exception):
    """A program did not run, or its clock says too little; the text says what."""


@dataclass(frozen=True)
class Clocked:
    """One run by the program's own clock. The mean includes the rare long steps that checkpoints and epochs cause."""

    mean_s: float
    median_s: float
    steps: int

    def json(self) -> dict:
        return asdict(self)


def clocked(times: list[float]) -> Clocked:
    if len(times) < FEWEST_STEPS:
        raise Failed(f"only {len(times)} steps after its warm-up: too few to judge")
    return Clocked(mean(times), median(times), len(times))


def read_clock(path: Path) -> list[float]:
    """A list of seconds per step, or what tests/planted writes: the parts of every step."""
    try:
        said = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise Failed(f"the program's clock wrote nothing readable: {error}") from error
    return said if isinstance(said, list) else [step["wall"] for step in said["steps"][SINCE:]]


class Laboratory:
    """Owns a scratch folder; every program runs in it and finds the photos there."""

    def __init__(
        self,
        scratch: Path,
        seconds: float,
        fullbore: Path = FULLBORE,
        python: str = sys.executable,
        budget_s: float = 90,
        recordings: Path | None = None,
    ) -> None:
        self.scratch = scratch
        self.seconds = seconds  # of training, in what is recorded
        self.fullbore = fullbore
        self.python = python  # which runs the programs
        self.budget_s = budget_s  # of each proof
        self.recordings = recordings  # where run files are kept, to be judged again by another version

    def lacks(self, module: str) -> bool:
        """Whether the programs' Python cannot import it."""
        return subprocess.run([self.python, "-c", f"import {module}"], capture_output=True).returncode != 0

    def make_photos(self) -> None:
        maker = ROOT / "examples" / "make_photos.py"
        command = [sys.executable, maker, self.scratch / "photos", "--count", "48"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)

    def record(self, case: Case, enter: Callable[[], None], kept_as: str = "") -> tuple[Clocked, dict]:
        """The program under `fullbore run`, with its report. The run file is kept under that name."""
        asked = {"seconds": self.seconds} if case.takes("seconds") else {}
        with self._place() as place:
            command, environment = self._command(case, asked, place / "train.py")
            report = place / "report.json"
            watch = [self.fullbore, "run", "-o", place / "runs", "--json", report, "--quiet", "--"]
            run_to_the_end([*watch, *command], environment, place, enter, 120 + 10 * self.seconds)
            seen = clocked(read_clock(place / "clock.json"))
            if self.recordings and kept_as:
                self.recordings.mkdir(parents=True, exist_ok=True)
                shutil.move(next((place / "runs").glob("*.fbr")), self.recordings / f"{kept_as}.fbr")
            return seen, json.loads(report.read_text())

    def prove(self, case: Case, change: Change, enter: Callable[[], None], promised: dict | None = None) -> dict:
        """What the change gains, by `fullbore compare` of the program as it is and with it: until it is told from none,
        and from both ends of what was promised. Its gain is None where there was no time for two pairs."""
        clean = clean_environment()
        endless = {name: value for name, value in ENDLESS.items() if case.takes(name)}
        with self._place() as place:
            commands = []
            for name, asked in (("as-is", endless), ("changed", {**endless, **change})):
                command, environment = self._command(case, asked, place / f"{name}.py")
                own = [f"{name}={value}" for name, value in environment.items() if clean.get(name) != value]
                commands.append(shlex.join(["env", *own, *map(str, command)]))
            compare = [self.fullbore, "compare", "--budget", f"{self.budget_s}s", "--json", "said.json"]
            both = ["--baseline", commands[0], "--candidate", commands[1]]
            # Its contest may count steps, and what was promised is of samples.
            words = [*compare, *until_told_from(promised if work_of_step(case, change) == 1 else None), *both]
            said = said_of_contest(words, place, enter, self.budget_s + SPARE_S)
            if said["gain"] and said["unit"] == "steps/s":
                said |= in_work(said["gain"], work_of_step(case, change))
            return {name: said[name] for name in ("verdict", "gain", "turns", "pairs")}

    def explain(self, kept_as: str) -> dict | None:
        """What this version of fullbore says of a run that was recorded before; None if it was not kept."""
        kept = self.recordings / f"{kept_as}.fbr" if self.recordings else None
        if not kept or not kept.exists():
            return None
        said = subprocess.run([self.fullbore, "explain", kept, "--json", "-"], capture_output=True, text=True)
        if said.returncode != 0:
            raise Failed(f"fullbore explain {kept}: {said.stderr.strip()}")
        return json.loads(said.stdout)

    @contextlib.contextmanager
    def _place(self) -> Iterator[Path]:
        with tempfile.TemporaryDirectory(dir=self.scratch) as folder:
            (Path(folder) / "photos").symlink_to(self.scratch / "photos")
            yield Path(folder)

    def _command(self, case: Case, change: Change, script: Path) -> tuple[list, dict[str, str]]:
        """And its environment. A script without a place of its own is written there."""
        started = case.invocation({case.clock: "clock.json", **change})
        if case.file:
            script = case.file
        else:
            script.write_text(started.script)
        environment = clean_environment()
        if "fast-data" in case.changes:
            environment["PYTHONPATH"] = str(PYTHON_PACKAGE)
        return [self.python, script, *started.arguments], {**environment, **started.environment}


def work_of_step(case: Case, change: Change) -> float:
    """How many times as much a step of the changed program does."""
    accumulated = [{**case.settings.values, **case.base, **each}.get("accumulate", 1) for each in ({}, change)]
    return accumulated[1] / accumulated[0]


def in_work(gain: dict, factor: float) -> dict:
    """Of a gain in steps, where one of the changed program's does so many times as much."""
    gain = {name: value * factor for name, value in gain.items()}
    verdict = "faster" if gain["low"] > 1 else "slower" if gain["high"] < 1 else "not-proven"
    return {"gain": gain, "verdict": verdict}


def until_told_from(promised: dict | None) -> list[str]:
    """From none, and from both ends of what was promised: words for `fullbore compare`, which takes those below 11."""
    ends = [round(100 * (promised[end] - 1), 1) for end in ("low", "high")] if promised else []
    conditions = ["not-faster", *(f"not-faster {end}%" for end in ends if 0 < end < 1000)]
    return [word for condition in conditions for word in ("--fail-if", condition)]


def said_of_contest(command: list, place: Path, enter: Callable[[], None], timeout_s: float) -> dict:
    """What a comparison wrote. It also ends with an error where nothing is known, or what it was asked to is so."""
    ended = None
    try:
        run_to_the_end(command, clean_environment(), place, enter, timeout_s)
    except Failed as failure:
        ended = failure
    if not (place / "said.json").exists():
        raise ended or Failed("the comparison wrote nothing")
    said = json.loads((place / "said.json").read_text())
    if said["verdict"] == "failed":
        raise Failed(said["why"])
    return said


def clean_environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(LEFT_OUT)}


def run_to_the_end(command: list, environment: dict[str, str], place: Path, enter: Callable, timeout_s: float) -> None:
    """Its own session, so that Ctrl-C or a hang leaves no process of it behind."""
    with open(place / "output.txt", "w+") as output:
        process = subprocess.Popen(
            [str(word) for word in command],
            env=environment,
            cwd=place,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=enter,
        )
        try:
            code = process.wait(timeout_s)
        except subprocess.TimeoutExpired as error:
            raise Failed(f"did not end within {timeout_s:.0f} s") from error
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        output.seek(0)
        said = output.read()[-2000:].strip()
        if code != 0 and TORN_DOWN not in said:
            raise Failed(f"ended with {code}: {said}")
