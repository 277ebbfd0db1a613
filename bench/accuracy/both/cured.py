"""Programs that hold their own cure (`--fixed`): each is recorded, and what the report promises is compared with what
the cure brings, as it is and cured in turns."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from .findings import findings_of, names
from .turns import Failed, rates_in_turns

NO_GAIN = 1.05
LEFT_OUT = ("FULLBORE_", "OMP_", "MKL_", "PYTHON")
ENDLESS_S = 1_000_000
ENOUGH_S = 600  # for a recording


@dataclass(frozen=True)
class Program:
    """Its docstring says what the cause is, and the fix. Where the report's first advice is another than the fix,
    `Promise:` says how the one begins that is the fix; `Promise: none` that none is."""

    script: Path
    expected: tuple[str, ...]  # the findings that name the cause, as "id cause"
    python: str

    @property
    def name(self) -> str:
        return self.script.stem

    def command(self, seconds: float, *more: str) -> list[str]:
        launch = ["-m", "torch.distributed.run", "--nproc-per-node", "2"] if "torchrun --" in self.about() else []
        return [self.python, *launch, str(self.script), "--seconds", str(seconds), *more]

    def about(self) -> str:
        return ast.get_docstring(ast.parse(self.script.read_text())) or ""

    def said(self, what: str) -> str:
        found = re.search(rf"^{what}: (.*?)(?=\n[A-Z]\w+:|\Z)", self.about(), re.DOTALL | re.MULTILINE)
        return " ".join(found[1].split()) if found else ""

    def lacks(self) -> list[str]:
        """The modules that this Python does not have."""
        imports = [each for each in ast.walk(ast.parse(self.script.read_text())) if isinstance(each, ast.Import)]
        wanted = {alias.name.partition(".")[0] for each in imports for alias in each.names}
        test = "import importlib.util, sys; sys.exit(importlib.util.find_spec(sys.argv[1]) is None)"
        return [each for each in sorted(wanted) if subprocess.run([self.python, "-c", test, each]).returncode != 0]


@dataclass(frozen=True)
class Place:
    """Where and how programs run."""

    fullbore: Path
    folder: Path
    seconds: float  # that are recorded
    turns_s: float  # of each, as it is and cured
    recordings: Path  # the run files stay there
    variables: dict[str, str] = field(default_factory=dict)
    goes_first: bool = False  # before all others of this machine

    def first(self) -> list[str]:
        return ["chrt", "-r", "1"] if self.goes_first else []

    def environment(self) -> dict[str, str]:
        return {k: v for k, v in os.environ.items() if not k.startswith(LEFT_OUT)} | self.variables

    def recorded(self, program: Program) -> dict:
        report, runs = self.folder / f"{program.name}.json", self.recordings / program.name
        shutil.rmtree(runs, ignore_errors=True)
        watch = [str(self.fullbore), "run", "-o", str(runs), "--quiet", "--json", str(report), "--"]
        command = [*self.first(), *watch, *program.command(self.seconds)]
        try:
            done = subprocess.run(
                command, cwd=self.folder, env=self.environment(), capture_output=True, text=True, timeout=ENOUGH_S
            )
        except subprocess.TimeoutExpired as error:
            raise Failed(f"{program.name}: did not end within {ENOUGH_S} s") from error
        if done.returncode != 0 or not report.exists():
            raise Failed(f"{program.name}: {done.stderr[-2000:]}")
        return json.loads(report.read_text())

    def rates(self, program: Program) -> tuple[float, float]:
        both = [[*self.first(), *program.command(ENDLESS_S, *more)] for more in ((), ("--fixed",))]
        return rates_in_turns(*both, self.environment(), self.folder, self.turns_s)


def promised(program: Program, finding: dict) -> dict | None:
    """What is promised of the fix: with a range where it is the first advice, else what its sentence expects."""
    begins = program.said("Promise")
    if not begins or begins == "none":
        return None if begins else finding.get("speedup")
    words = next((fix for fix in finding["fix"] if fix.startswith(begins)), "")
    if words and words == finding["fix"][0]:
        return finding.get("speedup")
    gain = re.search(r", ([\d.]+)x\)$", words)
    return {"expected": float(gain[1])} if gain else None


def about_the_program(findings: list[dict]) -> list[dict]:
    """Without what is said of other programs on the machine, as long as something else is said."""
    return [each for each in findings if each["id"] != "cpu-contention"] or findings


def judged(program: Program, report: dict) -> dict:
    findings = about_the_program(findings_of(report))
    place = next((i for i, each in enumerate(findings) if names(each, program.expected)), None)
    promise = None if place is None else promised(program, about_the_program(report["findings"])[place])
    return {"cause": program.said("Cause"), "findings": findings, "place": place, "promised": promise}


def examined(program: Program, place: Place) -> dict:
    verdict = judged(program, place.recorded(program))
    as_is, cured = place.rates(program)
    return {"program": program.name, **verdict, "as_is": as_is, "cured": cured, "gain": cured / as_is}


def judged_again(program: Program, result: dict, place: Place) -> dict:
    """Of the recording that was kept; what its cure brings does not depend on who promised it."""
    report = place.folder / "again.json"
    recording = newest(place.recordings / program.name)
    subprocess.run(
        [place.fullbore, "explain", "--quiet", "--json", report, recording], check=True, stdout=subprocess.DEVNULL
    )
    return {**result, **judged(program, json.loads(report.read_text()))}


def newest(runs: Path) -> Path:
    return max(runs.glob("*.fbr"), key=lambda path: path.stat().st_mtime)


def is_right(result: dict) -> bool:
    """It names the cause first, or promises nothing where the cure brings nothing."""
    return result["place"] == 0 or ("speedup" not in result["findings"][0] and result["gain"] < NO_GAIN)


def off_by(result: dict) -> float | None:
    """The speed with the cure, measured against predicted."""
    return abs(result["gain"] / result["promised"]["expected"] - 1) if result["promised"] else None


def held(result: dict) -> bool | None:
    span = result["promised"]
    return span["low"] <= result["gain"] <= span["high"] if span and "low" in span else None


HEAD = "| program | first finding | names the cause | promised | measured, cured | off by | held |\n" + "|---" * 7 + "|"


def row(result: dict) -> str:
    first, span, off = result["findings"][0], result["promised"], off_by(result)
    said = f"{first['id']} {first.get('cause', '')}".strip()
    where = {0: "first", None: "no"}.get(result["place"], f"number {(result['place'] or 0) + 1}")
    promise = f"{span['expected']:.2f}x" if span else "nothing"
    promise += f" ({span['low']:.2f} to {span['high']:.2f})" if span and "low" in span else ""
    keeps = {True: "yes", False: "**no**", None: "-"}[held(result)]
    cells = [
        result["program"],
        said,
        where,
        promise,
        f"{result['gain']:.2f}x",
        "-" if off is None else f"{off:.0%}",
        keeps,
    ]
    return "| " + " | ".join(cells) + " |"
