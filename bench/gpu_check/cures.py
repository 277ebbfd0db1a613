"""What a cure brings on this device, beside what fullbore predicts from a recording of the program without it.

    cures.py GROUP DIRECTORY           measures the pairs of a group, and writes a trace of its program: one JSON object
    cures.py GROUP DIRECTORY CHANGE    measures that pair alone, or with no-change the program against itself

The program as it is and the program with the cure take turns in one process, timed by their own clock without any
profiler; then the first is recorded with torch's profiler, as a user would. What fullbore says of that recording is
asked outside (check.py).
"""

from __future__ import annotations

import gzip
import json
import statistics
import sys
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from programs import Options, Training, default_device, made
from strangers import CURES
from torch.profiler import ProfilerActivity, profile, schedule

TURNS, TURN_S = 5, 0.3
RECORDED_STEPS = 20
NOTED = {"cpu_op", "cuda_runtime", "cuda_driver"}


@dataclass(frozen=True)
class Group:
    """A program, and what would make it faster: (changes, as --what-if calls them; what is different with them)."""

    model: str
    options: Any
    cures: tuple[tuple[str, dict[str, Any]], ...]


GRAPHED, FUSED, COMPILED = (
    ("graphs", {"graphed": True}),
    ("fused-optimizer", {"optimizer": "fused"}),
    {"compiled": True},
)
UNREAD, BF16, TF32 = ("no-sync", {"read_loss": False}), ("precision", {"precision": "bf16"}), {"precision": "tf32"}

GROUPS = {
    "gpt": Group("gpt", Options(batch=8), (BF16, ("precision", TF32), FUSED, GRAPHED, ("compile", COMPILED))),
    "gpt-small": Group("gpt", Options(batch=1, precision="tf32", read_loss=True), (GRAPHED, FUSED, UNREAD)),
    "resnet": Group("resnet", Options(batch=64), (BF16, GRAPHED, FUSED)),
    "resnet-small": Group("resnet", Options(batch=8, read_loss=True), (UNREAD, GRAPHED, FUSED)),
    "mlp-loop": Group("mlp", Options(batch=64, optimizer="loop"), (FUSED, GRAPHED, ("compile", COMPILED))),
    "mlp": Group("mlp", Options(batch=64, read_loss=True), (UNREAD, GRAPHED, FUSED)),
    "loader": Group(
        "resnet",
        Options(batch=64, data="loader"),
        (("workers=8", {"workers": 8}), ("workers=8,pin", {"workers": 8, "pinned": True})),
    ),
    "copies": Group(
        "thin",
        Options(batch=128, data="host", read_loss=True),
        (("pin", {"pinned": True}), ("side-stream", {"side_stream": True, "pinned": True})),
    ),
    "bytes": Group("thin", Options(batch=128, data="host", pinned=True), (("bytes", {"as_bytes": True}),)),
    "allocator": Group(
        "gpt", Options(batch=2, precision="tf32", empty_cache=True), (("allocator", {"empty_cache": False}),)
    ),
    "pauses": Group("mlp", Options(batch=64, collect_every=5), (("garbage-collection", {"collect_every": 0}),)),
    "checkpoints": Group(
        "gpt", Options(batch=4, precision="tf32", checkpoint_every=10), (("checkpoint", {"checkpoint_every": 0}),)
    ),
}


STRANGERS = {name: Group(name, *parts) for name, parts in CURES.items()}


def alone(group: Group, change: str) -> Group:
    cures = [cure for cure in (*group.cures, ("no-change", {})) if cure[0] == change]
    return replace(group, cures=tuple(cures[:1]))


def words_of(model: str, options: Any) -> str:
    """As programs.py takes them."""
    given = {name: int(value) if isinstance(value, bool) else value for name, value in asdict(options).items()}
    return " ".join([model, *(f"{name}={value}" for name, value in given.items())])


def measured(group: Group, before: Training) -> list[dict]:
    """For each cure the ns of a step without and with it, turn by turn."""
    before.turn(TURN_S)
    pairs = []
    for change, different in group.cures:
        options = group.options, replace(group.options, **different)
        pair: dict[str, Any] = {"change": change, "different": different}
        pair["words"] = [words_of(group.model, each) for each in options]
        try:
            begin = time.monotonic()
            after = made(group.model, options[1], before.device)
            after.turn(TURN_S)
            pair["start_s"] = time.monotonic() - begin
            turns = [(before.turn(TURN_S), after.turn(TURN_S)) for _ in range(TURNS)]
            pair["before_ns"], pair["after_ns"] = ([turn[at] for turn in turns] for at in (0, 1))
            gains = sorted(a / b for a, b in turns)
            pair["gain"], pair["gains"] = statistics.median(gains), [gains[0], gains[-1]]
            del after
        except Exception as error:  # one cure that this torch cannot make leaves the others
            pair["failed"] = f"{type(error).__name__}: {error}".splitlines()[0]
        pairs.append(pair)
    return pairs


def record(program: Training, path: Path) -> dict[str, float]:
    """As the page of torch.profiler shows it. Returns the ns of a step without the profiler, right before, and with it,
    and how many operators and calls it notes in a step."""
    without_ns = program.turn(TURN_S)
    activities = [ProfilerActivity.CPU] + ([ProfilerActivity.CUDA] if program.device == "cuda" else [])
    plan = schedule(wait=1, warmup=3, active=RECORDED_STEPS)
    with profile(activities=activities, schedule=plan, record_shapes=True) as profiler:
        for step in range(4 + RECORDED_STEPS):
            if step == 4:
                program.wait()
                begin = time.perf_counter_ns()
            program.step()
            if step == 3 + RECORDED_STEPS:
                program.wait()
                end = time.perf_counter_ns()
            profiler.step()
    profiler.export_chrome_trace(str(path))
    with gzip.open(path) as file:
        noted = sum(event.get("cat") in NOTED for event in json.load(file)["traceEvents"])
    per_step = {"recorded_ns": (end - begin) / RECORDED_STEPS, "events": noted / RECORDED_STEPS}
    return {"without_ns": without_ns, **per_step}


def main() -> None:
    groups = {**GROUPS, **STRANGERS}
    if len(sys.argv) not in (3, 4) or sys.argv[1] not in groups:
        sys.exit(f"usage: cures.py {{{','.join(groups)}}} DIRECTORY [CHANGE]")
    if default_device() == "cpu":
        torch.set_num_threads(1)
    group = groups[sys.argv[1]]
    if len(sys.argv) == 4:
        group = alone(group, sys.argv[3])
    before = made(group.model, group.options, default_device())
    pairs = measured(group, before)
    if len(sys.argv) == 4:
        return print(json.dumps({"torch": torch.__version__, "pairs": pairs}))
    recording = record(before, Path(sys.argv[2]) / f"{sys.argv[1]}.pt.trace.json.gz")
    print(json.dumps({"torch": torch.__version__, "pairs": pairs, "recording": recording}))


if __name__ == "__main__":
    main()
