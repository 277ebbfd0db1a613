"""`exam.py unfit`: is nothing promised of recordings that cannot be judged, and is none refused that can be?

Each program is recorded as it is, which must not be refused, and spoilt in some of the ways of unfit.py, of which
nothing may be promised.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path

from both.tables import proportion, read_results, table

from .examine import explain
from .plant import generated
from .run import seeds_of
from .simulate import simulate
from .trace import write_traces
from .unfit import SPOILERS, recorded_as, spoilt

FIT = "as it is"
KINDS_OF_A_PROGRAM = 3
NOT_FIT = ("single-step",)  # planted causes whose recordings are unfit as they are
WHAT_IF = "graphs,no-sync,pin"
CORRECTED = "corrected"  # a clock that was set right is as good as one that was right


def kinds_of(seed: int) -> list[str]:
    return random.Random(f"unfit {seed}").sample(list(SPOILERS), KINDS_OF_A_PROGRAM)


def examined(seed: int, kind: str, fullbore: Path, scratch: Path) -> dict:
    pair = generated(seed)
    rng = random.Random(f"unfit {seed} {kind}")
    program = recorded_as(pair.before, kind)
    path = write_traces(simulate(program, f"unfit {seed} {kind}"), scratch)[0]
    if kind != FIT:
        path.write_text(spoilt(path.read_text(), kind, rng))
    result = {"case": f"{seed} {kind}", "seed": seed, "kind": kind, "cause": pair.cause}
    try:
        report = explain(fullbore, [path], WHAT_IF)
    except (OSError, subprocess.SubprocessError, ValueError) as failure:
        return {**result, "failed": str(failure)}
    return {**result, **said(report)}


def said(report: dict) -> dict:
    fitness = report.get("fitness", [])
    replay = report.get("replay", {})
    return {
        "judgeable": report.get("judgeable", True),
        "conditions": {each["id"]: each["forbids"] for each in fitness},
        "corrected": any(each["id"] == "clock" and CORRECTED in each["says"] for each in fitness),
        "promised": [each["id"] for each in report["findings"] if "speedup" in each],
        "ladder": len(replay.get("ladder", [])) + len(replay.get("what_if", [])),
        "first": report["findings"][0]["id"] if report["findings"] else "",
    }


def refuses(result: dict) -> bool:
    """The recording, or at least all gains. An error that says what is wrong is a refusal, too."""
    if "failed" in result:
        return True
    return not result["judgeable"] or any("gains" in forbids for forbids in result["conditions"].values())


def is_right(result: dict) -> bool:
    return refuses(result) or bool(result.get("corrected"))


def promises(result: dict) -> bool:
    """A gain that must not be: of what is refused, or ought to be."""
    corrected = result["kind"] == "clock ahead" and result.get("corrected")
    return result["kind"] != FIT and not corrected and bool(result.get("promised") or result.get("ladder"))


def markdown(results: list[dict]) -> str:
    kinds = [FIT, *SPOILERS]
    groups = {kind: [each for each in results if each["kind"] == kind] for kind in kinds}
    unfit = [each for each in results if each["kind"] != FIT]
    rows = {"all unfit": unfit, **{kind: of for kind, of in groups.items() if of}}
    columns = (
        ("refused, or corrected", lambda cases: proportion([is_right(each) for each in cases])),
        ("a gain predicted all the same", lambda cases: str(sum(promises(each) for each in cases))),
    )
    wrong = [each for each in results if promises(each) or is_right(each) == (each["kind"] == FIT)]
    lines = [f"- `{each['seed']}` ({each['kind']}, {each['cause']}): said {each.get('first') or 'nothing'}; "
             f"conditions {', '.join(each.get('conditions', {})) or 'none'}" for each in wrong[:10]]  # fmt: skip
    return f"{table(rows, 'recording', columns)}\n\nWrong:\n\n" + ("\n".join(lines) or "None.")


def run(arguments: argparse.Namespace, commit: str) -> int:
    if not arguments.fullbore.exists():
        sys.exit(f"exam.py: no {arguments.fullbore}\nhint: make build")
    finished = {result["case"] for result in read_results(arguments.results)}
    arguments.results.parent.mkdir(parents=True, exist_ok=True)
    for seed in seeds_of(arguments.seeds, arguments.programs)[: arguments.pairs]:
        if generated(seed).cause in NOT_FIT:
            continue
        for kind in [FIT, *kinds_of(seed)]:
            if f"{seed} {kind}" in finished:
                continue
            with tempfile.TemporaryDirectory(prefix="fullbore-exam-") as scratch:
                folder = Path(scratch)
                if arguments.keep:
                    folder = arguments.keep / f"{seed}-{kind.replace(' ', '-')}"
                    folder.mkdir(parents=True, exist_ok=True)
                result = {**examined(seed, kind, arguments.fullbore, folder), "commit": commit}
            with open(arguments.results, "a") as file:
                file.write(json.dumps(result) + "\n")
            verdict = "wrong" if promises(result) or is_right(result) == (kind == FIT) else "right"
            print(f"{seed:>4} {kind}: {verdict}", file=sys.stderr, flush=True)
    print(f"\n{markdown(read_results(arguments.results))}")
    return 0
