"""Metrics that the script gives to a logger of its own (loss, learning rate): kept, thinned, and told to the recorder.

A call of the script costs an entry in a queue; the line sampler's thread writes what is there into the channel. A value
that lives on a device is not read: that would make the script wait for it.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterable
from typing import Any

from ..core.interrupts import is_the_scripts
from ..core.runtime import clock, guarded, hook

MOST_METRICS = 64
MOST_NAME = 200  # characters; a longer name is left out, and so is one that a terminal could not show
MOST_LEFT_OUT = 1000  # of so many names it is known that they were
MOST_WAITING = 8192  # points; where no thread takes them, those after the first so many are lost
MOST_IN_A_LINE = 500
# Points of a metric are no closer than this; but its last is always kept.
FINE_NS, FINE_FOR_NS, LATER_NS = 200_000_000, 600_000_000_000, 10_000_000_000
# What a dictionary of metrics says of where the training is.
STEPS = ("step", "global_step", "trainer/global_step", "train/global_step")
NOT_METRICS = {*STEPS, "epoch", "train/epoch"}
NOT_THE_SCRIPTS = ("system/", "fullbore/", "_")  # measured by a logger itself, or told by us
LARGEST_STEP = 1 << 53
ON_DEVICE = object()
LAZY = ("jax", "tensorflow.")  # arrays that may still be computed, wherever they are


class Metric:
    """What is logged under one name."""

    __slots__ = ("name", "loggers", "due", "held", "thinned", "not_finite", "on_device")

    def __init__(self, name: str, logger: str) -> None:
        self.name = name
        self.loggers = [logger]  # the first is the one whose values are taken
        self.due = 0  # when the next point is kept
        self.held: tuple[Any, ...] | None = None  # the newest point that was not
        self.thinned = self.not_finite = self.on_device = 0

    def about(self) -> dict[str, Any]:
        counts = {"thinned": self.thinned, "not_finite": self.not_finite, "on_device": self.on_device}
        return {"loggers": list(self.loggers), **{name: count for name, count in counts.items() if count}}


class Logged:
    def __init__(self) -> None:
        self.metrics: dict[str, Metric] = {}
        self.left_out: set[str] = set()
        self.waiting: deque = deque()
        self.begin = 0
        self.changed = False  # something that is stated at once

    def metric(self, name: str, logger: str) -> Metric | None:
        found = self.metrics.get(name)
        if found is None:
            if len(self.metrics) >= MOST_METRICS or len(name) > MOST_NAME or not name.isprintable() or not name:
                if len(self.left_out) < MOST_LEFT_OUT:
                    self.left_out.add(name[:MOST_NAME])
                return None
            hook.at_end(tell_last)  # not before: what is asked for later is called sooner, and the goodbye ends all
            found = self.metrics[name] = Metric(name, logger)
            self.changed = True
        return found

    def add(self, name: str, value: Any, step: int | None, logger: str, now: int) -> Metric | None:
        number = number_or_none(value)
        if number is None or name in NOT_METRICS or name.startswith(NOT_THE_SCRIPTS):
            return None
        metric = self.metric(name, logger)
        if metric is None:
            return None
        if metric.loggers[0] != logger:
            self.was_given_to(metric, logger)
            return metric
        if number is ON_DEVICE:
            self.changed |= not metric.on_device
            metric.on_device += 1
        elif number - number != 0:  # NaN, or infinite
            self.changed |= not metric.not_finite
            metric.not_finite += 1
        else:
            self.keep(metric, (metric.name, now, number, step))
        return metric

    def was_given_to(self, metric: Metric, logger: str) -> None:
        if logger not in metric.loggers:
            metric.loggers.append(logger)
            self.changed = True

    def keep(self, metric: Metric, point: tuple[Any, ...]) -> None:
        now = point[1]
        if now < metric.due or len(self.waiting) >= MOST_WAITING:
            metric.thinned += metric.held is not None
            metric.held = point
            return
        metric.thinned += metric.held is not None
        metric.held = None
        self.give(metric, point, now)

    def give(self, metric: Metric, point: tuple[Any, ...], now: int) -> None:
        self.begin = self.begin or now
        metric.due = now + (FINE_NS if now - self.begin < FINE_FOR_NS else LATER_NS)
        self.waiting.append(point)

    def tell(self, is_last: bool = False) -> None:
        """Writes what waits into the channel, and so the newest values once they are due, or nothing follows."""
        now = clock()
        for metric in tuple(self.metrics.values()):
            point = metric.held
            if point is not None and (is_last or now >= metric.due):
                if metric.held is point:  # else the script has logged a newer one meanwhile
                    metric.held = None
                self.give(metric, point, now)
        while points := self.some_waiting():
            hook.say("logged", points=points)
        if self.changed:
            self.changed = False
            hook.fact("logged", self.about())
            hook.fact("logged_left_out", len(self.left_out) or None)

    def some_waiting(self) -> list[tuple[Any, ...]]:
        """Takes them. At the process's end its main thread does so too: by then, another may have taken the last."""
        points: list[tuple[Any, ...]] = []
        try:
            while len(points) < MOST_IN_A_LINE:
                points.append(self.waiting.popleft())
        except IndexError as error:
            if is_the_scripts(error):
                raise
        return points

    def about(self) -> dict[str, Any]:
        return {name: metric.about() for name, metric in tuple(self.metrics.items())}


logged = Logged()


def number_or_none(value: Any) -> Any:
    try:
        return number_of(value)
    except Exception as error:  # of what is said to be a number
        if is_the_scripts(error):
            raise
        return None


def number_of(value: Any) -> Any:
    """As a float; ON_DEVICE for one that the host would have to wait for; None for anything else. Runs no code of the
    script's: of its own classes, what is Python's number in them is taken. May raise."""
    kind = type(value)
    if kind is float:
        return value
    if kind is bool:
        return None
    if isinstance(value, float):
        return float.__float__(value)
    if isinstance(value, int):
        return int.__float__(value)
    if kind.__module__ == "numpy":
        return number_of_numpy(value)
    if kind.__module__.startswith(LAZY):
        return ON_DEVICE if value.shape == () else None
    return number_of_tensor(value)


def number_of_numpy(value: Any) -> float | None:
    numpy = sys.modules["numpy"]
    if not isinstance(value, (numpy.number, numpy.ndarray)) or value.size != 1:
        return None
    return float(value.item()) if value.dtype.kind in "fiu" else None


def number_of_tensor(value: Any) -> Any:
    torch = sys.modules.get("torch")
    if torch is None or type(value) not in (torch.Tensor, torch.nn.Parameter) or value.numel() != 1:
        return None
    return float(value.item()) if value.device.type == "cpu" else ON_DEVICE


def step_of(step: Any, values: Any = None) -> int | None:
    """The step that the script gives, beside its metrics or among them."""
    if step is None and values is not None:
        step = next((values[name] for name in STEPS if name in values), None)
    number = None if step is None else number_or_none(step)
    if number is None or number is ON_DEVICE or not 0 <= number <= LARGEST_STEP:
        return None
    return int(number)


def take(logger: str, values: Iterable[tuple[Any, Any]], step: int | None) -> list[Metric]:
    """The metrics of one call of a logger."""
    now = clock()
    taken = (logged.add(str.__str__(name), value, step, logger, now) for name, value in values if isinstance(name, str))
    metrics = [metric for metric in taken if metric is not None]
    hook.extra_ns += clock() - now
    return metrics


def forget() -> None:
    logged.__init__()  # type: ignore[misc]


hook.forget_in_child.append(forget)


@guarded
def tell_last() -> None:
    logged.changed = bool(logged.metrics)
    logged.tell(is_last=True)


def attach() -> None:
    """Asked for by each logger that is imported."""
    if logged.tell not in hook.beside:
        hook.beside.append(logged.tell)
