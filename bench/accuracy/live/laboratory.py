"""Runs a case's program, with or without fullbore, and reads what the program's own clock said."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import mean, median

from .case import Case, Change

ROOT = Path(__file__).resolve().parents[3]
FULLBORE = Path(os.environ.get("FULLBORE", ROOT / "build/release/fullbore"))
PYTHON_PACKAGE = ROOT / "build/release/python"  # with the engine that fullbore.data needs
SINCE = 8  # steps before a planted case counts as steady; generated programs leave out their own warm-up
FEWEST_STEPS = 5
# Python's end cuts off a program's daemon thread inside torch, which aborts the process when all is done and written.
TORN_DOWN = "terminate called without an active exception"
# What whoever starts the exam may have set, and what would change every program.
LEFT_OUT = ("FULLBORE_", "OMP_", "MKL_", "PYTHONPATH", "TORCH_")


class Failed(Exception):
    """A program did not run, or its clock says too little; the text says what."""


@dataclass(frozen=True)
class Half:
    """One run. The mean is what a step costs: it includes the rare long steps that checkpoints and epochs cause."""

    mean_s: float
    median_s: float
    steps: int

    def json(self) -> dict:
        return asdict(self)


def half_from(times: list[float]) -> Half:
    if len(times) < FEWEST_STEPS:
        raise Failed(f"only {len(times)} steps after its warm-up: too few to judge")
    return Half(mean(times), median(times), len(times))


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
        recordings: Path | None = None,
    ) -> None:
        self.scratch = scratch
        self.seconds = seconds
        self.fullbore = fullbore
        self.python = python  # which runs the programs
        self.recordings = recordings  # where run files are kept, to be judged again by another version

    def lacks(self, module: str) -> bool:
        """Whether the programs' Python cannot import it."""
        return subprocess.run([self.python, "-c", f"import {module}"], capture_output=True).returncode != 0

    def make_photos(self) -> None:
        maker = ROOT / "examples" / "make_photos.py"
        command = [sys.executable, maker, self.scratch / "photos", "--count", "48"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)

    def measure(self, case: Case, change: Change, enter: Callable[[], None]) -> Half:
        half, _ = self._run(case, change, enter, recorded=False)
        return half

    def record(self, case: Case, enter: Callable[[], None], kept_as: str = "") -> tuple[Half, dict]:
        """The same under `fullbore run`, with its report. The run file is kept under that name."""
        return self._run(case, {}, enter, recorded=True, kept_as=kept_as)

    def explain(self, kept_as: str) -> dict | None:
        """What this version of fullbore says of a run that was recorded before; None if it was not kept."""
        kept = self.recordings / f"{kept_as}.fbr" if self.recordings else None
        if not kept or not kept.exists():
            return None
        said = subprocess.run([self.fullbore, "explain", kept, "--json", "-"], capture_output=True, text=True)
        if said.returncode != 0:
            raise Failed(f"fullbore explain {kept}: {said.stderr.strip()}")
        return json.loads(said.stdout)

    def _run(
        self, case: Case, change: Change, enter: Callable[[], None], recorded: bool, kept_as: str = ""
    ) -> tuple[Half, dict]:
        with tempfile.TemporaryDirectory(dir=self.scratch) as folder:
            place = Path(folder)
            (place / "photos").symlink_to(self.scratch / "photos")
            command, environment = self._command(case, change, place)
            report = place / "report.json"
            if recorded:
                watch = [self.fullbore, "run", "-o", place / "runs", "--json", report, "--quiet", "--"]
                command = [*watch, *command]
            run_to_the_end(command, environment, place, enter, 120 + 10 * self.seconds)
            half = half_from(read_clock(place / "clock.json"))
            if self.recordings and kept_as:
                self.recordings.mkdir(parents=True, exist_ok=True)
                shutil.move(next((place / "runs").glob("*.fbr")), self.recordings / f"{kept_as}.fbr")
            return half, json.loads(report.read_text()) if recorded else {}

    def _command(self, case: Case, change: Change, place: Path) -> tuple[list, dict[str, str]]:
        asked: Change = {case.clock: "clock.json"}
        if case.takes("seconds"):
            asked["seconds"] = self.seconds
        started = case.invocation({**asked, **change})
        script = place / "train.py"
        if case.file:
            script = case.file
        else:
            script.write_text(started.script)
        environment = {k: v for k, v in os.environ.items() if not k.startswith(LEFT_OUT)}
        if "fast-data" in case.changes:
            environment["PYTHONPATH"] = str(PYTHON_PACKAGE)
        return [self.python, script, *started.arguments], {**environment, **started.environment}


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
