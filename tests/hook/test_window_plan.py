"""When device windows begin, by a clock of the test's own."""

from __future__ import annotations

import pytest
from hook_package import load

plans = load("torch.window_plan")
hook = load("core.runtime").hook
S = 1_000_000_000
WINDOW_NS = S // 10


class Training:
    """Looks at the plan after every 64th step, as the hook does, and keeps the steps at which windows began."""

    def __init__(self, text: str = "") -> None:
        hook.steps = 0
        self.now = S
        self.plan = plans.Plan(text)
        self.began: list[int] = []

    def train(self, seconds: float, step_s: float, together: bool = False) -> Training:
        for number in range(int(seconds / step_s)):
            hook.steps += 1
            # A validation now and then, as long as forty steps.
            self.now += int(step_s * S) * (41 if number % 500 == 499 else 1)
            if hook.steps % 64 == 0:
                self.look(together)
        return self

    def look(self, together: bool) -> None:
        self.plan.note_pace(self.now)
        if self.plan.is_due(self.now, together):
            self.began.append(hook.steps)
            self.now += WINDOW_NS
            self.plan.ended(self.now, WINDOW_NS)


@pytest.fixture(autouse=True)
def leave_nothing():
    yield
    hook.steps = 0


def test_the_first_window_waits_for_a_minute_and_the_next_one_for_ten():
    training = Training().train(1800, 0.1)
    first, second, *_ = training.began
    assert 600 <= first < 700
    assert second - first >= 5000


def test_there_is_another_window_once_steps_have_come_to_take_longer():
    training = Training().train(200, 0.1)
    assert len(training.began) == 1
    training.train(100, 0.15)
    assert len(training.began) == 2


def test_a_slow_half_minute_is_no_change_for_good():
    training = Training().train(200, 0.1).train(15, 0.3).train(200, 0.1)
    assert len(training.began) == 1


def test_however_often_steps_change_windows_keep_to_their_budget():
    training = Training()
    for number in range(30):
        training.train(100, 0.1 if number % 2 else 0.2)
    assert len(training.began) > 2
    assert training.plan.spent_ns <= plans.BUDGET * training.now


def test_ranks_do_not_open_windows_of_their_own():
    training = Training().train(200, 0.1, together=True).train(200, 0.2, together=True)
    assert training.began == [64]


def test_a_window_that_was_asked_for_is_the_only_one():
    training = Training("3@128").train(100, 0.1).train(200, 0.2)
    assert training.began == [128]


class TrainingOnCpu(Training):
    """Of `nodes` of autograd a step, which uses `cores`."""

    def __init__(self, nodes: int, cores: float = 1.5) -> None:
        super().__init__()
        operators = plans.Operators(lambda: nodes * hook.steps, lambda: int(cores * self.now))
        self.plan = plans.PlanOnCpu(operators)
        self.plan.parameters = 7
        self.look(together=False)

    def train(self, seconds: float, step_s: float, together: bool = False) -> TrainingOnCpu:
        for _ in range(int(seconds / step_s)):
            hook.steps += 1
            self.now += int(step_s * S)
            if hook.steps % 64 == 0 or hook.steps == plans.state.wanted:
                self.look(together)
        return self


def test_on_a_cpu_the_first_window_begins_when_the_run_is_long_enough_for_its_operators():
    few = TrainingOnCpu(nodes=16).train(60, 0.2).began[0] * 0.2
    assert 5 <= few < 7
    many = TrainingOnCpu(nodes=770).train(60, 0.1).began[0] * 0.1
    assert 25 <= many < 40


def test_a_costly_window_lasts_for_one_step():
    assert TrainingOnCpu(nodes=16).train(60, 0.2).plan.steps == plans.STEPS_ON_CPU
    assert TrainingOnCpu(nodes=770).train(60, 0.1).plan.steps == 1


def test_a_run_of_a_few_seconds_has_none():
    assert TrainingOnCpu(nodes=16).train(4.5, 0.01).began == []


def test_a_training_that_waits_most_of_the_time_has_none():
    assert TrainingOnCpu(nodes=16, cores=0.3).train(60, 0.2).began == []


def test_beside_other_ranks_there_is_none_on_a_cpu():
    assert TrainingOnCpu(nodes=16).train(60, 0.2, together=True).began == []


def test_later_windows_on_a_cpu_are_as_rare_as_on_a_device():
    training = TrainingOnCpu(nodes=16).train(1800, 0.2)
    first, second, *_ = training.began
    assert (second - first) * 0.2 >= 600
