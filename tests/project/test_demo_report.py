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


def proof(low: float, expected: float, high: float) -> dict:
    verdict = "faster" if low > 1 else "slower" if high < 1 else "not-proven"
    gain = {"expected": expected, "low": low, "high": high}
    return {"verdict": verdict, "gain": gain, "baseline": {"rate": 190.0}, "candidate": {"rate": 285.0}}


@pytest.mark.parametrize(
    "measured, verdict",
    [
        (proof(1.2, 1.3, 1.38), "below the prediction"),
        (proof(1.38, 1.39, 1.41), "by less than the measurement may be off"),
        (proof(1.45, 1.5, 1.55), "within the predicted range"),
        (proof(1.61, 1.7, 1.8), "above the prediction"),
        (proof(0.9, 1.5, 2.5), "not proven"),
        (proof(1.1, 1.5, 2.5), "nor could it"),
        (proof(0.98, 1.02, 1.06), "below the prediction"),
        ({**proof(1, 1, 1), "gain": None}, "not proven"),
    ],
)
def test_the_proven_gain_is_judged_by_the_predicted_range(measured, verdict):
    assert verdict in demo_report.table(report(200), measured)


def test_the_table_shows_what_was_recorded_predicted_and_measured():
    text = demo_report.table(report(200), proof(1.45, 1.5, 1.55))
    for part in ("280 to 320", "1.50x (1.40 to 1.60)", "190", "285", "1.50x (1.45 to 1.55)"):
        assert part in text
