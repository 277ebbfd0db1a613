"""From a seed to a pair: a program with one planted cause, the same program cured, and what is true of both.

Whatever is drawn is tried without noise first. A draw in which the planted cause is not the largest loss, or in which
its cure gains next to nothing, is thrown away for the next one of the same seed.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

from .causes import CAUSES, LATER
from .pair import Pair, Unsuitable, losses, tried, true_share
from .plants import PLANTS
from .program import Program
from .simulate import Run

ATTEMPTS = 60
LEAST_GAIN, MOST_GAIN = 1.08, 20.0
LEAST_SHARE = 0.07  # below that a program counts as healthy
SECOND_CHANCE = 0.3
SECOND_AT_MOST = 0.4  # of what the first costs
OTHERS_AT_MOST = 0.5  # of the planted loss, each
HEALTHY_AT_MOST = 0.035  # of any loss


def cause_of(seed: int) -> str:
    """Seeds 2k and 2k+1 plant the same."""
    kinds = [cause for cause in CAUSES if cause not in LATER]
    for cause, first in LATER.items():
        kinds = [cause] if seed >= first else kinds
    return kinds[(seed // 2) % len(kinds)]


def generated(seed: int) -> Pair:
    cause = cause_of(seed)
    for attempt in range(ATTEMPTS):
        rng = random.Random(f"device pair {seed} {attempt}")
        try:
            pair = PLANTS[cause](rng, f"{seed} {attempt}")
            return checked(replace(pair, name=str(seed), cause=cause), rng)
        except Unsuitable:
            continue
    raise RuntimeError(f"seed {seed}: no draw of {ATTEMPTS} shows {cause}")


def checked(pair: Pair, rng: random.Random) -> Pair:
    run = tried(pair.before)
    if pair.cause == "healthy" and max(losses(run).values()) > HEALTHY_AT_MOST:
        raise Unsuitable
    if pair.after is None:
        return pair
    cured = tried(pair.after)
    gain = run.step_ns / cured.step_ns
    if not LEAST_GAIN <= gain <= MOST_GAIN:
        raise Unsuitable
    cost = 1 - 1 / gain
    share = true_share(pair.cause, run)
    if share is not None and share < LEAST_SHARE:
        raise Unsuitable
    if beside(pair, run) > OTHERS_AT_MOST * (share or cost):
        raise Unsuitable
    if pair.rule.share == "cost" and losses(cured)["launch"] > OTHERS_AT_MOST * cost:
        raise Unsuitable  # what the synchronisation costs is then a matter of taste
    return with_second(pair, rng, run.step_ns, gain) if rng.random() < SECOND_CHANCE else pair


def beside(pair: Pair, run: Run) -> float:
    """The largest loss that is not part of what was planted."""
    own = (*pair.rule.comes_with, pair.rule.share)
    return max(value for name, value in losses(run).items() if name not in own)


def with_second(pair: Pair, rng: random.Random, step_ns: float, gain: float) -> Pair:
    """A smaller problem, which is there before and after the change, if one of them is small enough."""
    names = [each for each in SECONDS if each != pair.cause]
    for name in rng.sample(names, len(names)):
        before, after = SECONDS[name](pair.before, step_ns), SECONDS[name](pair.after, step_ns)
        worse = tried(before).step_ns
        cost, first_cost = 1 - step_ns / worse, 1 - tried(after).step_ns / worse
        if 0.01 <= cost <= SECOND_AT_MOST * min(first_cost, 1 - 1 / gain) and first_cost >= 1 - 1 / LEAST_GAIN:
            return replace(pair, before=before, after=after, second=name)
    return pair


SECONDS: dict[str, Callable[[Program, float], Program]] = {
    "item": lambda program, step_ns: replace(program, item_of_loss=1),
    "silent": lambda program, step_ns: replace(program, silent_ms=0.04 * step_ns / 1e6),
    "pageable": lambda program, step_ns: replace(program, pinned=program.side_stream),
    "foreach": lambda program, step_ns: replace(program, optimizer_impl="foreach"),
    "checkpoint": lambda program, step_ns: replace(program, checkpoint_every=program.steps, checkpoint_ms=5.0),
}
