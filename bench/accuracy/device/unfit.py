"""Recordings that cannot be judged: the trace of a simulated program, spoilt as profilers spoil them.

Each spoiler takes the trace as Kineto would have written it, and returns what it would have written had something gone
wrong. Nothing may be promised of any of them; the trace itself, unspoilt, is fit.
"""

from __future__ import annotations

import json
import random
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import replace

from .program import Program

DEVICE_KINDS = ("kernel", "gpu_memcpy", "gpu_memset")
LAUNCH = "Launch"
MODULE_MS = (4.0, 15.0)  # what loading the code of a kernel takes

Trace = dict
Spoiler = Callable[[Trace, random.Random], Trace]


def on_device(event: dict) -> bool:
    return event.get("cat") in DEVICE_KINDS


def is_launch(event: dict) -> bool:
    return event.get("cat") == "cuda_runtime" and LAUNCH in event["name"]


def is_step(event: dict) -> bool:
    return event.get("cat") in ("user_annotation", "gpu_user_annotation") and event["name"].startswith("ProfilerStep#")


def with_events(trace: Trace, events: list[dict]) -> Trace:
    return {**trace, "traceEvents": events}


def span(trace: Trace) -> tuple[float, float]:
    works = [event for event in trace["traceEvents"] if on_device(event)]
    return min(event["ts"] for event in works), max(event["ts"] + event["dur"] for event in works)


def kernels_dropped_at_the_start(trace: Trace, rng: random.Random) -> Trace:
    """CUPTI loses what runs while it starts."""
    begin, end = span(trace)
    until = begin + rng.uniform(0.15, 0.9) * (end - begin)
    return with_events(trace, [each for each in trace["traceEvents"] if not (on_device(each) and each["ts"] < until)])


def kernels_dropped_everywhere(trace: Trace, rng: random.Random) -> Trace:
    """Buffers that were full, or graphs whose kernels are recorded only in part."""
    lost = rng.uniform(0.1, 0.9)
    kept = [each for each in trace["traceEvents"] if not (on_device(each) and rng.random() < lost)]
    return with_events(trace, kept)


def capture(trace: Trace, rng: random.Random) -> Trace:
    """What is launched while a graph is captured does not run."""
    launches = [each for each in trace["traceEvents"] if is_launch(each)]
    begin, end = launches[0]["ts"], launches[-1]["ts"]
    prefix = "hip" if launches[0]["name"].startswith("hip") else "cuda"
    calls = [
        {**launches[0], "name": f"{prefix}StreamBeginCapture", "ts": begin - 2, "dur": 1, "args": {"correlation": 1}},
        {**launches[0], "name": f"{prefix}StreamEndCapture", "ts": end + 6, "dur": 1, "args": {"correlation": 2}},
    ]
    works = [each for each in trace["traceEvents"] if on_device(each)]
    kept = {id(each) for each in works[: rng.choice((1, 2, 4))]}
    events = [each for each in trace["traceEvents"] if not on_device(each) or id(each) in kept]
    return with_events(trace, events + calls)


def cold_start(trace: Trace, rng: random.Random) -> Trace:
    """Every step meets kernels whose code has yet to be loaded: their launches take milliseconds."""
    launches = [each for each in trace["traceEvents"] if is_launch(each)]
    cold = sorted(rng.sample(launches, max(1, min(len(launches), 40, len(launches) // 3))), key=lambda each: each["ts"])
    ends, later = [], []
    late = 0.0
    for each in cold:
        late += 1000 * rng.uniform(*MODULE_MS)
        ends.append(each["ts"] + each["dur"] / 2)
        later.append(late)

    def moved(ts: float) -> float:
        before = bisect_right(ends, ts)
        return ts + (later[before - 1] if before else 0.0)

    events = []
    for each in trace["traceEvents"]:
        if "dur" not in each:
            events.append(each)
            continue
        begin = moved(each["ts"])
        dur = each["dur"] if on_device(each) else moved(each["ts"] + each["dur"]) - begin
        events.append({**each, "ts": round(begin, 3), "dur": round(dur, 3)})
    return with_events(trace, events)


def several_devices(trace: Trace, rng: random.Random) -> Trace:
    """One process whose layers lie on several devices, which work in turn."""
    count = rng.choice((2, 4))
    works = sorted((each for each in trace["traceEvents"] if on_device(each)), key=lambda each: each["ts"])
    marks = sorted(each["ts"] for each in trace["traceEvents"] if is_step(each) and each["cat"] == "user_annotation")
    steps: list[list[dict]] = [[] for _ in range(len(marks) + 1)]
    for each in works:
        steps[bisect_right(marks, each["ts"])].append(each)
    for step in steps:
        for place, each in enumerate(step):
            device = place * count // len(step)
            each["args"] = {**each["args"], "device": device}
            each["pid"] = device
    return trace


def steps_of_a_part(trace: Trace, rng: random.Random) -> Trace:
    """Marks for the first steps only: most of what was recorded is in none."""
    names = sorted({each["name"] for each in trace["traceEvents"] if is_step(each)}, key=lambda name: int(name[13:]))
    kept = names[: max(2, len(names) // 4)]
    return with_events(trace, [each for each in trace["traceEvents"] if not is_step(each) or each["name"] in kept])


def clock_ahead(trace: Trace, rng: random.Random) -> Trace:
    """The device's clock is not the host's."""
    off = rng.choice((-1, 1)) * 1000 * rng.uniform(3, 20)
    return with_events(
        trace,
        [{**each, "ts": round(each["ts"] + off, 3)} if on_device(each) else each for each in trace["traceEvents"]],
    )


def as_it_is(trace: Trace, rng: random.Random) -> Trace:
    return trace


# How the trace is spoilt, and with how many steps the program is recorded (None: as it is). Truncation is of the text.
SPOILERS: dict[str, tuple[Spoiler, int | None]] = {
    "kernels dropped at the start": (kernels_dropped_at_the_start, None),
    "kernels dropped everywhere": (kernels_dropped_everywhere, None),
    "capture": (capture, 2),
    "cold start": (cold_start, 2),
    "truncated": (as_it_is, None),
    "one step": (as_it_is, 1),
    "several devices": (several_devices, None),
    "steps of a part": (steps_of_a_part, 10),
    "clock ahead": (clock_ahead, None),
}


def recorded_as(program: Program, kind: str) -> Program:
    """On one rank, with the host's events: what is spoilt is the recording, not the program."""
    steps = SPOILERS[kind][1] if kind in SPOILERS else None
    return replace(program, ranks=1, slow_rank=-1, host_events=True, steps=steps or max(4, program.steps))


def spoilt(text: str, kind: str, rng: random.Random) -> str:
    trace = json.loads(text)
    trace["traceEvents"].sort(key=lambda each: each.get("ts", 0))
    whole = json.dumps(SPOILERS[kind][0](trace, rng))
    return whole[: int(rng.uniform(0.3, 0.95) * len(whole))] if kind == "truncated" else whole
