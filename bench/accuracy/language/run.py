"""`exam.py language`: records each of programs/, and measures its cure; one line of results each, and their table."""

from __future__ import annotations

import argparse
import json
import signal
import sys
import tempfile
from pathlib import Path
from statistics import median

from both.cured import HEAD, Place, Program, examined, held, is_right, judged_again, off_by, row
from both.tables import errors, proportion, read_results
from both.turns import Failed

PROGRAMS = Path(__file__).with_name("programs")
RIGHT, OFF_BY, HELD = 0.9, 0.08, 0.85

# What names the cause, as "id cause".
EXPECTED = {
    "maxlength": ("padding",),
    "lengths": ("padding",),
    "packing": ("padding",),
    "accumulate": ("comm-bound each-micro-batch",),
    "fsdp": ("comm-bound each-micro-batch",),
    "uneven": ("straggler*", "comm-bound uneven-ranks"),
    "threads": ("thread-oversubscription",),
    "recomputing": ("recomputation",),
    "teacher": ("frozen-network passes",),
    "headonly": ("frozen-network unused-gradients",),
    "anomaly": ("instrumentation anomaly-detection",),
    "double": ("needless-work double-precision",),
    "vocabulary": ("needless-work dense-gradient",),
    "compiled": ("recompilation given-up", "recompilation constants"),
    "tokenising": ("host-other tokenising",),
    "sampling": ("input-bound sampler",),
    "evaluating": ("host-other validation",),
    "logits": ("host-other kept-outputs",),
    "saving": ("host-other checkpoint",),
}


def programs(names: list[str], python: str) -> list[Program]:
    if unknown := [name for name in names if name not in EXPECTED]:
        sys.exit(f"exam.py: no program '{unknown[0]}'\nhint: {', '.join(EXPECTED)}")
    return [Program(PROGRAMS / f"{name}.py", EXPECTED[name], python) for name in names or EXPECTED]


def summary(results: list[dict]) -> dict:
    return {
        "right": [is_right(result) for result in results],
        "off": [off for result in results if (off := off_by(result)) is not None],
        "held": [kept for result in results if (kept := held(result)) is not None],
    }


def sentence(of: dict) -> str:
    return (
        f"First finding right: {proportion(of['right'])}; speed with the cure off by {errors(of['off'])} "
        f"(median / p95); ranges that held: {proportion(of['held'])}."
    )


def is_good(of: dict) -> bool:
    def most(values: list[bool], wanted: float) -> bool:
        return sum(values) >= wanted * len(values)

    return most(of["right"], RIGHT) and most(of["held"], HELD) and median(of["off"] or [0]) <= OFF_BY


def run(arguments: argparse.Namespace, origin: dict[str, str]) -> int:
    for needed, hint in ((arguments.fullbore, "make build"), (Path(arguments.python), "scripts/language.sh")):
        if not needed.exists():
            sys.exit(f"exam.py: no {needed}\nhint: {hint}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # what stands between two turns ends with the exam
    wanted = programs(arguments.names, arguments.python)
    arguments.results.parent.mkdir(parents=True, exist_ok=True)
    print(HEAD, file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory(prefix="fullbore-language-") as folder:
        place = place_of(arguments, Path(folder))
        known = {result["program"]: result for result in read_results(arguments.results)}
        for program in wanted:
            if program.name not in known:
                examine(program, place, arguments.results, origin)
        results = [each for each in read_results(arguments.results) if each["program"] in {one.name for one in wanted}]
        if arguments.again:
            by_name = {program.name: program for program in wanted}
            results = [judged_again(by_name[each["program"]], each, place) for each in results]
    of = summary(results)
    print(json.dumps({"programs": results, **of}) if arguments.json else text(results, of))
    return 0 if results and is_good(of) else 1


def place_of(arguments: argparse.Namespace, folder: Path) -> Place:
    """With one thread a rank, as torchrun has it: what else the machine does then takes less part."""
    recordings = arguments.results.resolve().with_suffix(".runs")
    variables = {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    return Place(arguments.fullbore, folder, arguments.seconds, arguments.turns, recordings, variables, arguments.first)


def text(results: list[dict], of: dict) -> str:
    return "\n".join([HEAD, *map(row, results), "", sentence(of)])


def examine(program: Program, place: Place, to: Path, origin: dict[str, str]) -> None:
    try:
        result = examined(program, place)
    except Failed as why:
        print(f"left out: {program.name}: {why}", file=sys.stderr, flush=True)
        return
    with open(to, "a") as file:
        file.write(json.dumps({**result, **origin}) + "\n")
    print(row(result), file=sys.stderr, flush=True)
