"""How often the line sampler looks: densely while what the loop does beside training is not known well enough."""

from __future__ import annotations

from hook_package import load

lines = load("sampling.lines")
BESIDE, FORWARD = 0, 1


def after(phases: list[int]) -> lines.Density:
    density = lines.Density()
    for phase in phases:
        density.note(phase, cost_ns=20_000)
    return density


def test_little_beside_training_needs_few_samples():
    assert after([FORWARD] * 99).period_s() == lines.DENSE_S
    assert after([FORWARD] * 100).period_s() == lines.SPARSE_S


def test_much_beside_training_is_sampled_densely_until_the_samples_are_many():
    half = [BESIDE, FORWARD] * (lines.SAMPLES_ENOUGH // 2)
    assert after(half[:-1]).period_s() == lines.DENSE_S
    assert after(half).period_s() == lines.SPARSE_S
    assert after(half + half[:100]).period_s() == lines.SPARSE_S
