"""The run that this process is a part of, for callbacks: the program is asked from time to time, and nobody waits for
its answer."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from typing import Any

from ..runs.program import find
from ..runs.reading import Run
from ..runs.recording import RUN, RUN_FILE

TRIAL = "FULLBORE_TRIAL"  # what measures settings is not disturbed, and logs nothing
LAST_S = 10.0  # how long the end of a training waits for the last answer
VERDICT = "fullbore/verdict"


def numbers(run: Run) -> dict[str, float]:
    """For a logger: the shares of the step, samples/s, and the verdict, as what it costs of the step by its name."""
    found = {f"fullbore/{share}": ratio for share, ratio in run.shares.items()}
    if run.samples_per_s is not None:
        found["fullbore/samples_per_s"] = run.samples_per_s
    if run.verdict is not None:
        found[f"{VERDICT}/{run.verdict.id}"] = run.verdict.share
    return found


class LiveRun:
    """Never raises: what cannot be read is not logged."""

    def __init__(self, every_s: float) -> None:
        self.every_s = every_s
        is_run = RUN in os.environ and TRIAL not in os.environ
        self.path = os.environ.get(RUN_FILE) if is_run else None
        self.next_s = time.monotonic() + every_s
        self.asked: tuple[subprocess.Popen, Any] | None = None

    def news(self) -> Run | None:
        """What has come since the last call. Costs the time of a look at the clock, and of starting a process where it
        is time to ask again."""
        try:
            if self.asked is not None:
                return self.answer()
            if self.path is not None and time.monotonic() >= self.next_s:
                self.ask(self.path)
        except Exception:
            self.give_up()
        return None

    def last(self) -> Run | None:
        """At the end of a training: what is known by then."""
        try:
            if self.path is not None:
                self.ask(self.path)
                self.asked[0].wait(LAST_S)  # type: ignore[index]
                return self.answer()
        except Exception:
            self.give_up()
        return None

    def give_up(self) -> None:
        """Where the logger takes none of it: nothing more is asked."""
        self.path = self.asked = None

    def ask(self, path: str) -> None:
        self.next_s = time.monotonic() + self.every_s
        said = tempfile.TemporaryFile()
        words = [find(), "explain", path, "--json", "-"]
        self.asked = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.DEVNULL), said

    def answer(self) -> Run | None:
        """None while there is none yet, and where nobody trained yet."""
        process, said = self.asked  # type: ignore[misc]
        if process.poll() is None:
            return None
        self.asked = None
        with said:
            said.seek(0)
            run = Run(json.loads(said.read()))
        return run if run.shares else None
