"""The built-in rules on ten minutes of noise: nothing to say of a healthy run, one thing of a run with one fault."""

from __future__ import annotations

import pytest
from alert_runs import rules, those_that_fired
from noisy_run import written


def fired(fullbore, file, run_file) -> dict[str, int]:
    done = fullbore.call("alerts", "test", file, run_file, "--json", "-")
    assert done.code == 0, done.stderr
    return those_that_fired(done.stdout)


@pytest.mark.parametrize("seed", range(4))
def test_nothing_fires_on_a_healthy_run(fullbore, tmp_path, seed):
    run_file = written(tmp_path / "healthy.fbr", seed)
    assert fired(fullbore, "default", run_file) == {}
    # Nor do rules that wait for less than anybody would.
    text = fullbore.call("alerts", "--defaults").stdout.decode()
    for duration in ("15m", "10m", "5m", "1m"):
        text = text.replace(f'for = "{duration}"', 'for = "30s"')
    assert fired(fullbore, rules(fullbore, text), run_file) == {}


def from_200_s(before: float, after: float):
    return lambda t: after if t > 200 else before


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ({"wait_of": from_200_s(0.03, 0.4)}, {"waits for data": 1}),
        # for as long as it was faster before
        ({"slowdown_of": lambda t: 1.5 if t > 620 else 1.0, "seconds": 1260}, {"slower than before": 1}),
        ({"slowdown_of": lambda t: 1.5 if t > 1200 else 1.0, "seconds": 2700}, {"slower than before": 1}),
    ],
)
def test_a_fault_within_the_same_noise_fires_once(fullbore, tmp_path, fault, said):
    assert fired(fullbore, "default", written(tmp_path / "faulty.fbr", 1, **fault)) == said


def test_a_share_that_wavers_around_its_threshold_is_told_once(fullbore, tmp_path):
    run_file = written(tmp_path / "wavers.fbr", 1, wait_of=lambda t: 0.28 if t % 60 < 40 else 0.24)
    text = '[[alert]]\nname = "waits"\nfinding = "input-bound"\nabove = 0.25\nfor = "1m"'
    assert fired(fullbore, rules(fullbore, text), run_file) == {"waits": 1}
