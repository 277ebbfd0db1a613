"""Simulated time."""

from __future__ import annotations

import pytest
from device.engine import Engine, Signal


def test_actions_come_in_the_order_of_their_moments_and_then_of_their_asking():
    engine, seen = Engine(), []
    for moment, name in ((20, "late"), (10, "early"), (10, "as early, asked later")):
        engine.at(moment, lambda name=name: seen.append((engine.now, name)))
    engine.run()
    assert seen == [(10, "early"), (10, "as early, asked later"), (20, "late")]


def test_a_process_lets_time_pass():
    engine, seen = Engine(), []

    def process():
        yield 5
        seen.append(engine.now)
        yield 7
        seen.append(engine.now)

    engine.start(process())
    engine.run()
    assert seen == [5, 12]


def test_two_processes_see_each_other_at_the_right_moments():
    engine, seen = Engine(), []

    def ticking(name, step):
        for _ in range(3):
            yield step
            seen.append((engine.now, name))

    engine.start(ticking("a", 10))
    engine.start(ticking("b", 4))
    engine.run()
    assert seen == [(4, "b"), (8, "b"), (10, "a"), (12, "b"), (20, "a"), (30, "a")]


def test_who_waits_for_a_signal_goes_on_when_it_is_given():
    engine, signal, seen = Engine(), Signal(), []

    def waiting():
        yield signal
        seen.append(engine.now)

    engine.start(waiting())
    engine.at(9, signal.give)
    engine.run()
    assert seen == [9]


def test_a_signal_that_was_given_holds_nobody_up():
    engine, signal, seen = Engine(), Signal(), []
    signal.give()

    def asking():
        yield 3
        yield signal
        seen.append(engine.now)

    engine.start(asking())
    engine.run()
    assert seen == [3]


def test_who_gives_a_signal_finishes_before_those_who_waited_go_on():
    """Else a host that is let go runs ahead while the device is in the middle of an action."""
    engine, signal, seen = Engine(), Signal(), []

    def waiting():
        yield signal
        yield 100
        seen.append("waited")

    def gives():
        signal.give()
        seen.append(f"gave, and it is still {engine.now}")

    engine.start(waiting())
    engine.at(5, gives)
    engine.run()
    assert seen == ["gave, and it is still 5", "waited"]


def test_a_wait_for_what_never_happens_is_an_error():
    engine = Engine()

    def waiting():
        yield Signal()

    engine.start(waiting())
    with pytest.raises(RuntimeError, match="1 processes wait"):
        engine.run()
