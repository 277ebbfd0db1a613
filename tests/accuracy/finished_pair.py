"""A finished simulated pair, made by hand."""

from __future__ import annotations


def said(words: str = "copy-bound", gain: float | None = 2.0, **more) -> dict:
    finding = {**dict(zip(("id", "cause"), words.split())), "share": 0.5, "title": "Copies take half of the step."}
    if gain:
        finding["speedup"] = {"expected": gain, "low": gain * 0.9, "high": gain * 1.1}
    return {**finding, "severity": "warning", "fix": ["pin_memory=True"], **more}


def pair(*findings: dict, **more) -> dict:
    """Twenty milliseconds a step; ten with the cure: what was predicted."""
    made = {
        "case": "7",
        "cause": "pageable",
        "about": "copies from pageable memory",
        "device": "a100",
        "second": "",
        "change": "pin",
        "detail": "",
        "expects": ["copy-bound*"],
        "forbids": [],
        "never": [],
        "true": {"step_times_ns": [21_000_000, 20_000_000, 20_000_000], "before_ns": 20e6, "after_ns": 10e6},
        "findings": list(findings) or [said()],
        "prediction": {"by": "finding", "expected": 10e6, "low": 9e6, "high": 11e6},
        "step_ns": 20_000_000,
        "steps": 2,
        "warmup_steps": 1,
    }
    made["true"]["share"] = 0.5
    return {**made, **more}
