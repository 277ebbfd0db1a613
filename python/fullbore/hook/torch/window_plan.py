"""When device windows begin: once the training has settled, now and then, and when its steps have come to take another
time for good; never so often that they cost more than their budget."""

from __future__ import annotations

import collections
import statistics
from typing import Callable

from ..core.runtime import hook
from ..core.steps import look_after, state

STEPS = 4
FIRST_STEP = 32  # the steady state has begun; before it, a window would show the start of libraries
FIRST_AFTER_NS = 60_000_000_000  # a shorter run would spend more than BUDGET on it
PERIOD_S = 600
BUDGET = 0.005  # of the run's time, in windows
# A change that is there for good: beyond what a noisy machine does, and for 40 s.
CHANGED = 1.2
MEASUREMENTS, APART_NS = 8, 5_000_000_000


class Pace:
    """Whether steps take another time than right after the last window. Medians: a validation, a checkpoint or a slow
    moment is no change."""

    def __init__(self) -> None:
        self.last: tuple[int, int] | None = None  # step, time
        self.first: list[float] = []  # ns a step
        self.latest: collections.deque[float] = collections.deque(maxlen=MEASUREMENTS)

    def note(self, step: int, now: int) -> None:
        if self.last is not None:
            step_before, then = self.last
            if now - then < APART_NS or step == step_before:
                return
            measured = self.first if len(self.first) < MEASUREMENTS else self.latest
            measured.append((now - then) / (step - step_before))
        self.last = step, now

    def has_changed(self) -> bool:
        if len(self.latest) < MEASUREMENTS:
            return False
        before, after = statistics.median(self.first), statistics.median(self.latest)
        return max(before, after) > CHANGED * min(before, after)


class Plan:
    """In a job of several ranks by the number of the step alone, so that all begin together."""

    def __init__(self, text: str) -> None:
        count, at, step = text.partition("@")
        self.only_at = int(step) if at else None
        self.steps = int(count) if at else STEPS
        self.period_ns = 0 if at else int(float(text or PERIOD_S) * 1e9)
        self.next_step: int | None = self.only_at if self.only_at is not None else FIRST_STEP
        self.first_step_ns = 0
        self.windows = self.spent_ns = 0
        self.pace = Pace()
        state.wanted = self.next_step

    def note_pace(self, now: int) -> None:
        if self.windows and self.next_step is not None:
            self.pace.note(hook.steps, now)

    def is_due(self, now: int, together: bool) -> bool:
        """`now`: after a step; `together`: whether other ranks have to come to the same answer."""
        if not self.first_step_ns:
            self.first_step_ns = now
        if self.next_step is None:
            return False
        if self.only_at is not None or together:
            return hook.steps >= self.next_step
        running = now - self.first_step_ns
        if hook.steps >= self.next_step:
            return running >= FIRST_AFTER_NS and self.spent_ns <= BUDGET * running
        return self.pace.has_changed() and self.spent_ns * (1 + 1 / self.windows) <= BUDGET * running

    def ended(self, now: int, taken_ns: int) -> None:
        """A window took this long. The steps between two of them are a power of two: ranks whose clocks differ a little
        nearly always come to the same number. Where they do not, each waits for the other's windows."""
        self.windows += 1
        self.spent_ns += taken_ns
        if self.only_at is not None or self.next_step is None:
            self.next_step = None
            return
        mean_ns = max(1, (now - self.first_step_ns) // max(1, hook.steps))
        apart = max(self.period_ns, int(self.spent_ns / BUDGET)) // mean_ns
        self.next_step = state.wanted = (hook.steps // FIRST_STEP) * FIRST_STEP + (1 << max(5, apart.bit_length()))
        self.pace = Pace()


# Where nobody asked, on a CPU. What a window costs there follows from the operators that it records. The figures are
# estimates from a few windows on a machine that was not quiet: 2,800 operators a step cost some 85 ms for two steps.
LEAST_ON_CPU_NS = 5_000_000_000  # a run that is shorter has no window
FIXED_NS, OPERATOR_NS = 10_000_000, 15_000
PER_NODE, PER_PARAMETER = 12, 25  # operators for each node of autograd, and for each tensor that Adam updates
UNHURRIED_NS = 100_000_000  # a cheaper window may last for several steps
STEPS_ON_CPU = 3
COMPUTES = 0.5  # of the time: less is a training that waits for something else


class Operators:
    """About how many operators a step calls, and whether the thread that steps computes: from two numbers that cost
    little to ask for, the nodes of autograd that it has made, and how long it has run or wanted to."""

    def __init__(self, sequence: Callable[[], int], busy_ns: Callable[[], int]) -> None:
        self.sequence, self.busy_ns = sequence, busy_ns
        self.first: tuple[int, int] | None = None  # time, time busy
        self.last: tuple[int, int] | None = None  # step, nodes
        self.nodes = self.computes = 0.0  # a step; of the time since the first step

    def note(self, now: int) -> bool:
        """After a step; whether anything is known."""
        used, seen = self.busy_ns(), (hook.steps, self.sequence())
        before, self.last = self.last, seen
        if self.first is None:
            self.first = now, used
        if before is None or seen[0] == before[0] or seen[1] < before[1]:
            return False
        self.nodes = (seen[1] - before[1]) / (seen[0] - before[0])
        self.computes = (used - self.first[1]) / max(1, now - self.first[0])
        return True


class PlanOnCpu(Plan):
    """The first window begins once the run is long enough for what it will cost."""

    def __init__(self, operators: Operators) -> None:
        super().__init__("")
        self.operators = operators
        self.parameters = 0  # tensors that the optimizer updates
        self.next_look = 0  # the step before which it does not ask: that takes as long as a small step

    def cost_ns(self, steps: int) -> int:
        called = PER_NODE * self.operators.nodes + PER_PARAMETER * self.parameters
        return FIXED_NS + int(steps * called * OPERATOR_NS)

    def is_due(self, now: int, together: bool) -> bool:
        """Never where other ranks would have to wait for it."""
        if together or self.windows:
            return not together and super().is_due(now, together)
        if hook.steps < self.next_look:
            return False
        known = self.operators.note(now)
        if not self.first_step_ns:
            self.first_step_ns = now
        if self.next_step is None:
            return False
        self.steps = STEPS_ON_CPU if self.cost_ns(STEPS_ON_CPU) <= UNHURRIED_NS else 1
        running = now - self.first_step_ns
        missing = max(LEAST_ON_CPU_NS, int(self.cost_ns(self.steps) / BUDGET)) - running
        if known and missing <= 0 and hook.steps >= STEPS:
            return self.operators.computes >= COMPUTES
        steps_so_far = max(1, hook.steps - 1)  # the first look is after the first one
        until = max(0, missing) * steps_so_far // running if running else 0
        self.next_look = hook.steps + 1 + min(until, hook.steps)  # the steps may come to take longer
        look_after(hook.steps + 1 + until)
        return False
