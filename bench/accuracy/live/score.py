"""What one finished case says of the verdict. Pure: results on file can be judged again at any time."""

from __future__ import annotations

from dataclasses import dataclass

from both.findings import names

from .causes import CAUSES, NAMED_ANYWHERE, NOTHING_TO_GAIN
from .examine import ADVISED, CURE

AS_MUCH = 0.97  # of a gain: what is not told from it
WORTH_DOING = 1.05  # a gain below this is none: the report must not make a headline of it
MISSED = 1.10  # "healthy" is wrong if a usual change gains this much


@dataclass(frozen=True)
class Score:
    """Unknown is None: a case without applicable advice says nothing about predictions."""

    right: bool  # the first finding
    slower: bool | None = None  # the advised change is proven to make the program slower
    gain: float | None = None  # of the advised change, measured
    error: float | None = None  # of the predicted step time, as a ratio of the measured one; negative: too fast
    in_range: bool | None = None
    width: float | None = None  # of the predicted range, high over low
    missed: bool | None = None  # nothing was advised, though a change gains 10 %
    best: float | None = None  # the largest measured gain of any change
    misfit: bool = False  # a gain was promised for something that the program does not do
    apart: float | None = None  # the interval of the advised change's gain, high over low
    clock_error: float | None = None  # of the report's step time against the program's own clock, in the same run


def proof(result: dict, name: str) -> dict:
    """Of a change: its gain is None where two pairs could not be made."""
    return result["proofs"].get(name) or {"verdict": "not-proven", "gain": None}


def gain(result: dict, name: str) -> float | None:
    known = proof(result, name)["gain"]
    return known["expected"] if known else None


def score(result: dict) -> Score:
    first = result["findings"][0]
    gains = {name: known for name in result["proofs"] if (known := gain(result, name)) is not None}
    best = max(gains.values(), default=None)
    promised, state = first.get("speedup"), result["advice"]
    scored = {
        "right": is_right(result, gains),
        "best": best,
        "misfit": state == "misfit",
        "clock_error": clock_error(result),
    }
    if state == "none" and (gains or not result["proofs"]):
        told = [known for name, known in gains.items() if proof(result, name)["verdict"] == "faster"]
        scored["missed"] = max(told, default=1) >= MISSED
    measured = gains.get(ADVISED)
    if measured is not None:
        known = proof(result, ADVISED)
        slower = known["verdict"] == "slower" and not is_for_now(result)
        scored.update(gain=measured, slower=slower, apart=known["gain"]["high"] / known["gain"]["low"])
    # What was predicted beside others is not measured alone.
    if measured is not None and state == "applied" and not result.get("alone"):
        scored.update(
            error=measured / promised["expected"] - 1,
            in_range=promised["low"] <= measured <= promised["high"],
            width=promised["high"] / promised["low"],
        )
    return Score(**scored)


def is_for_now(result: dict) -> bool:
    """Its advice says that it holds while others are there, and they were gone when it was measured."""
    first = result["findings"][0]
    said = [first.get("change", ""), *first.get("fix", [])]
    return bool(result.get("alone")) and any("while other programs use" in text for text in said)


def is_right(result: dict, gains: dict[str, float]) -> bool:
    """It names what was planted; or, as the measurements may show something else to be true on this machine: its advice
    brings as much as the planted cure; or it names the same thing, promises nothing for it, and the planted cure brings
    nothing; or it says that nothing is to be gained, and nothing is.
    """
    findings = result["findings"]
    first = findings[0]
    expects = tuple(result["expects"])
    if names(first, expects):
        return True
    if result["cause"] in NAMED_ANYWHERE:
        return any(names(finding, expects) for finding in findings)
    if result["foreign"] and names(first, CAUSES["foreign-load"]):
        return True
    advised, cured = gains.get(ADVISED), gains.get(CURE)
    if advised is not None and advised >= WORTH_DOING and advised >= (cured or 1) * AS_MUCH:
        return True
    same_thing = first["id"] in {pattern.split()[0] for pattern in expects}
    if same_thing and "speedup" not in first and cured is not None and cured < WORTH_DOING:
        return True
    silent = first["id"] in NOTHING_TO_GAIN and "speedup" not in first
    # Of a program that takes no change at all, what was planted is all that is known.
    tried = bool(gains) or result["cause"] == "healthy"
    return silent and tried and all(value < WORTH_DOING for value in gains.values())


def clock_error(result: dict) -> float | None:
    if not result.get("step_s") or "recorded" not in result:
        return None
    return result["step_s"] / result["recorded"]["mean_s"] - 1
