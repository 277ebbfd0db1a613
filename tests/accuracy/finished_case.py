"""A finished case of the exam, made by hand."""

from __future__ import annotations

SPEEDUP = {"expected": 1.5, "low": 1.3, "high": 1.7}


def proof(expected: float, low: float = 0, high: float = 0) -> dict:
    """Told to one per cent where nothing else is said."""
    low, high = low or 0.99 * expected, high or 1.01 * expected
    verdict = "faster" if low > 1 else "slower" if high < 1 else "not-proven"
    return {"verdict": verdict, "gain": {"expected": expected, "low": low, "high": high}, "turns": "slices"}


def finding(said: str = "input-bound no-workers", speedup: dict | None = SPEEDUP, **more: str) -> dict:
    words = {**dict(zip(("id", "cause"), said.split())), "share": 0.4, "title": "Training waits.", **more}
    return {**words, "speedup": speedup} if speedup else words


def result(first: dict | None = None, *, state: str = "applied", **more) -> dict:
    """The advised change gains what was predicted."""
    made = {
        "case": "7",
        "condition": "as-is",
        "cause": "no-workers",
        "about": "decodes in the training thread",
        "expects": ["input-bound no-workers"],
        "foreign": 0,
        "seconds": 12,
        "findings": [first or finding()],
        "advice": state,
        "recorded": {"mean_s": 0.030, "median_s": 0.030, "steps": 100},
        "step_s": 0.031,
        "changes": {"advised": {"num_workers": 2}},
        "proofs": {"advised": proof(1.5)},
    }
    return {**made, **more}
