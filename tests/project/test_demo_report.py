"""The demo's table shows prediction and outcome, and judges them honestly."""

import importlib.util
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "demo_report.py"
spec = importlib.util.spec_from_file_location("demo_report", SCRIPT)
demo_report = importlib.util.module_from_spec(spec)
spec.loader.exec_module(demo_report)


def report(samples_per_s: float, change: str = "DataLoader(num_workers=1)") -> dict:
    return {
        "throughput": {"samples_per_s": samples_per_s},
        "step_time": {"mean_ns": 32e9 / samples_per_s},
        "findings": [{"change": change, "speedup": {"expected": 1.5, "low": 1.4, "high": 1.6}}],
    }


def test_the_recommended_number_of_workers_is_read_from_the_change():
    assert demo_report.recommended_workers(report(200, "DataLoader(num_workers=12, pin_memory=True)")) == 12


def test_a_verdict_about_something_else_recommends_no_workers():
    assert demo_report.recommended_workers(report(200, "torch.compile(model)")) is None


@pytest.mark.parametrize(
    "rate, verdict",
    [(260, "slower than predicted"), (300, "within the predicted range"), (340, "faster than predicted")],
)
def test_the_measured_speedup_is_judged_by_the_predicted_range(rate, verdict):
    assert verdict in demo_report.table(report(200), report(rate))


def test_the_table_shows_rates_and_step_times_of_all_three():
    text = demo_report.table(report(200), report(300))
    for part in ("160 ms", "280 to 320", "100 to 114 ms", "1.40x to 1.60x", "107 ms", "1.50x"):
        assert part in text
