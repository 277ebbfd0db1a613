"""`fullbore.read`: a recorded run as plain objects and arrays. Files of runs are read by the program alone."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from .program import call
from .tables import Table, column, frame, number, rows_of

USUAL_DIRECTORY = ".fullbore/runs"


@dataclass(frozen=True)
class Place:
    """A line of source code."""

    file: str  # a path; "<cell 4>" of a notebook; a module's name where it is a library's
    line: int
    text: str  # empty where it is not known

    def __str__(self) -> str:
        if self.file.startswith("<cell "):
            return f"{self.file[1:-1]}, line {self.line}"
        return f"{os.path.basename(self.file)}:{self.line}"


@dataclass(frozen=True)
class Speedup:
    """How many times as fast the run gets: 1.5 means two thirds of the time."""

    expected: float
    low: float
    high: float


@dataclass(frozen=True)
class Finding:
    """What costs time, and what to do about it. docs/findings explains each `id`."""

    id: str  # "input-bound"
    cause: str  # finer than the id: "decode"; empty where there is nothing finer
    severity: str  # "info", "warning", "critical"
    share: float  # of the step, that it costs: 0 to 1
    title: str  # one sentence with the numbers in it
    fix: list[str]  # things to do, each alone; the first is the one recommended
    change: str  # that one, in code; empty where it is none
    where: list[Place]  # the line to change, or the costliest, first
    speedup: Speedup | None  # None where no gain is promised
    evidence: list[dict[str, Any]]  # docs/report.schema.json

    @classmethod
    def of(cls, said: Mapping[str, Any]) -> Finding:
        places = [Place(each["file"], each.get("line", 0), each.get("text", "")) for each in said.get("where", ())]
        gain = said.get("speedup")
        speedup = None if gain is None else Speedup(gain["expected"], gain["low"], gain["high"])
        texts = {name: said.get(name, "") for name in ("id", "cause", "severity", "title", "change")}
        lists = {name: list(said.get(name, ())) for name in ("fix", "evidence")}
        return cls(share=said["share"], where=places, speedup=speedup, **texts, **lists)


@dataclass(frozen=True)
class Series:
    """Readings of one quantity. `t_s` are seconds from the begin of the run, each the end of what its value covers."""

    name: str  # "gpu_sm_active{gpu=0}": docs/metrics.md
    unit: str  # "ratio", "bytes", "bytes/s", "cores", "W", ...
    t_s: Any
    values: Any


class AllSeries(Mapping[str, Series]):
    """The series of a run, by name."""

    def __init__(self, series: Mapping[str, Series]) -> None:
        self._series = dict(series)

    def __getitem__(self, name: str) -> Series:
        return self._series[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._series)

    def __len__(self) -> int:
        return len(self._series)

    def to_pandas(self) -> Any:
        """A pandas.DataFrame with a row for each reading: series, unit, t_s, value."""
        rows = [(one.name, one.unit, t_s, value) for one in self.values() for t_s, value in zip(one.t_s, one.values)]
        return frame(dict(zip(("series", "unit", "t_s", "value"), map(list, zip(*rows)))))


class Run:
    """A run as it was when it was read: one that is still recorded may be read again and again.

    Steps and series are fetched when they are first asked for.
    """

    def __init__(self, report: Mapping[str, Any]) -> None:
        self.report = report  # all that is said of it: docs/report.schema.json
        self.id: str = report.get("run_id", "")
        self.path: str = report["source"]
        self.findings = [Finding.of(each) for each in report["findings"]]

    def __repr__(self) -> str:
        return f"<run {self.id}: {self.verdict.title if self.verdict else 'no verdict'}>"

    @property
    def verdict(self) -> Finding | None:
        """The first finding; None where nothing was found, as in a run without steps."""
        return self.findings[0] if self.findings else None

    @property
    def shares(self) -> dict[str, float]:
        """Where a step's time goes, as ratios that sum to 1: `data_wait`, `forward`, `compute`, ... Empty where no
        training was seen."""
        return dict(self.report.get("step_time", {}).get("shares", {}))

    @property
    def samples_per_s(self) -> float | None:
        """Training examples a second, all ranks together; None where they could not be counted."""
        return self.report.get("throughput", {}).get("samples_per_s")

    @property
    def step_s(self) -> float | None:
        """A step in the steady state, on average, in seconds; None where no steps were seen."""
        mean_ns = self.report.get("step_time", {}).get("mean_ns")
        return None if mean_ns is None else mean_ns / 1e9

    @functools.cached_property
    def windows(self) -> Table:
        """All steps, in stretches of about a second (five in a long run): a row for each rank and stretch.

        `rank`, `first_step`, `steps` (how many), `begin_s` and `end_s` (from the begin of the run), `samples` (NaN
        where nobody counted them), `step_s`, `min_step_s`, `max_step_s` (mean, shortest and longest step, in seconds),
        and the shares of the time by name.
        """
        return self._steps("window")

    @functools.cached_property
    def steps(self) -> Table:
        """Steps one by one: the first 2,048, later the slowest and a stretch now and then. Columns as in `windows`."""
        return self._steps("step")

    @functools.cached_property
    def series(self) -> AllSeries:
        """What the machine and the processes did: Series by name."""
        readings: dict[tuple[str, str], tuple[list[float], list[float]]] = {}
        for row in self._rows("csv"):
            t_s, values = readings.setdefault((row["series"], row["unit"]), ([], []))
            t_s.append(float(row["t_s"]))
            values.append(float(row["value"]))
        return AllSeries(
            {name: Series(name, unit, column(t_s), column(values)) for (name, unit), (t_s, values) in readings.items()}
        )

    def _rows(self, table: str) -> list[dict[str, str]]:
        stage = self.report.get("stage")
        rows = rows_of(call("export", self.path, "--to", table))
        return [row for row in rows if stage is None or row["stage"] == stage]

    @functools.cached_property
    def _step_rows(self) -> list[dict[str, str]]:
        return self._rows("steps-csv")

    def _steps(self, kind: str) -> Table:
        rows = [row for row in self._step_rows if row["kind"] == kind]
        whole = {name: int for name in ("rank", "first_step", "steps")}
        named = [name for name in (rows[0] if rows else whole) if name not in ("stage", "kind")]
        return Table.of(rows, {name: whole.get(name, number) for name in named})


def read(run: str | os.PathLike[str] = "last", directory: str | os.PathLike[str] = USUAL_DIRECTORY) -> Run:
    """A recorded run: "last", its id or the beginning of one, or the path of a run file.

    `directory` is where runs are kept, for all but a path. Raises FullboreError where there is no such run, or its file
    cannot be read; its text and `hint` are the program's own.
    """
    return Run(json.loads(call("explain", run, "-o", directory, "--json", "-")))
