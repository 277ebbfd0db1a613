"""A pair: a program recorded as it is, and the true step times before and after its cure."""

import json
import random
from dataclasses import dataclass
from pathlib import Path

from second.base import Sizes, Unfit
from second.kineto import Writer
from second.program import Program
from second.recording import Profile
from second.scenarios import SCENARIOS, Case
from second.simulate import Run, model_of, simulate

LEAST, MOST = 1.03, 4.0  # gains that are kept
ATTEMPTS = 400
TRUE_STEPS = 40  # at least 24 are asked for
EVENTS = 9000  # launches in a file: about 1.3 kB each


@dataclass(frozen=True)
class Truth:
    """Mean step times without the profiler, ns."""

    before: float
    after: float

    @property
    def gain(self) -> float:
        """How many times faster."""
        return self.before / self.after


def prelude(program: Program, launches: int) -> int:
    """Steps until the launch queue is as full as it will be."""
    return min(14, 5 + 1024 // max(launches, 1)) if launches < 1024 else 5


def mean_step(program: Program, case: Case, model, key: str, least: int) -> float:
    """True mean step time over whole periods."""
    first = prelude(program, model.kernels)
    count = -(-least // program.period) * program.period
    return simulate(program, case.hardware, key, first + count, None, model).step_ns(first, first + count)


def truth_of(case: Case, key: str, least: int) -> Truth:
    """Both step times, each with noise of its own."""
    model = model_of(case.before, case.hardware)
    before = mean_step(case.before, case, model, f"{key}:before", least)
    if case.cure == "":
        return Truth(before, before)
    after = mean_step(case.after, case, model_of(case.after, case.hardware), f"{key}:after", least)
    return Truth(before, after)


def scenario_of(seed: int):
    """Each run of as many seeds as there are scenarios has all of them, in a drawn order."""
    block, place = divmod(seed, len(SCENARIOS))
    return random.Random(f"second block {block}").sample(SCENARIOS, len(SCENARIOS))[place]


def draw_case(seed: int) -> tuple:
    """(case, truth, key): the first draw that makes sense and whose gain is in the range."""
    scenario = scenario_of(seed)
    for attempt in range(ATTEMPTS):
        key = f"second {seed}.{attempt}"
        try:
            case = scenario(random.Random(key))
        except Unfit:
            continue
        if case.cure and not LEAST * 0.98 <= truth_of(case, f"{key}:look", 6).gain <= MOST * 1.05:
            continue
        truth = truth_of(case, key, TRUE_STEPS)
        if not case.cure or LEAST <= truth.gain <= MOST:
            return case, truth, key
    raise RuntimeError(f"seed {seed}: no pair in {ATTEMPTS} attempts")


def draw_profile(case: Case, key: str, launches: int) -> Profile:
    """How this pair's recording is made."""
    draw = random.Random(f"{key}:profile")
    program = case.before
    older = program.device in ("V100", "A100", "A10")
    style = draw.choices(("new", "middle", "old"), (0.5, 0.35, 0.15))[0] if older else "new"
    if style == "old" and program.ranks > 1:
        style = "middle"  # the old exporter does not say which rank it is
    stack = style == "new" and launches < 700 and draw.random() < (0.7 if program.collection.explicit else 0.2)
    active = max(3, min(8, EVENTS // max(launches, 1)))
    active = -(-active // program.period) * program.period
    warmup = prelude(program, launches) - 1 + draw.randint(0, 4)
    if program.period > 1 and warmup % program.period == program.period - 2:
        warmup += 1  # the first recorded step is not the one with validation, a checkpoint or a collection
    return Profile(
        wait=1,
        warmup=warmup,
        active=active,
        shapes=draw.random() < 0.85,
        stack=stack,
        style=style,
        annotate=draw.random() < 0.7,
        orphans=draw.random() < 0.7,
        memory=draw.random() < 0.2,
    )


def record(case: Case, key: str, folder: Path) -> tuple:
    """Writes the traces; returns (run, profile)."""
    model = model_of(case.before, case.hardware)
    profile = draw_profile(case, key, Sizes(case.before, case.hardware, model).launches)
    run = simulate(case.before, case.hardware, f"{key}:record", profile.steps, profile, model)
    ranks = case.before.ranks
    for rank, training in enumerate(run.trainings):
        recorder = training.host.recorder
        writer = Writer(recorder, case.hardware.spec, rank, ranks, training.marks, key)
        writer.write(folder / f"rank{rank}.pt.trace.json")
    return run, profile


def truth_file(seed: int, case: Case, truth: Truth, run: Run, profile: Profile) -> dict:
    """What stands in truth.json."""
    result = {
        "seed": seed,
        "device": case.before.device,
        "ranks": case.before.ranks,
        "family": case.before.family,
        "about": case.about,
        "cure": case.cure,
        "recorded_step_ns": run.steps_ns(profile.first, profile.steps),
        "before_ns": round(truth.before),
    }
    return {**result, "after_ns": round(truth.after)} if case.cure else result


def make_pair(seed: int, folder: Path) -> dict:
    """Writes the traces and truth.json of a seed."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    case, truth, key = draw_case(seed)
    run, profile = record(case, key, folder)
    result = truth_file(seed, case, truth, run, profile)
    (folder / "truth.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    return result
