"""Tables over finished cases, as markdown: all of them, by cause, the worst five."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from statistics import median

from both.tables import errors, grouped, half_of, proportion, table

from .causes import kind_of_cure
from .score import Score, score


def judged(results: Iterable[dict]) -> list[tuple[dict, Score]]:
    return [(result, score(result)) for result in results if "proofs" in result]


def known(cases: list[tuple[dict, Score]], member: str) -> list:
    return [value for _, each in cases if (value := getattr(each, member)) is not None]


COLUMNS: tuple[tuple[str, Callable[[list[tuple[dict, Score]]], str]], ...] = (
    ("first finding right", lambda cases: proportion(known(cases, "right"))),
    ("advice not slower", lambda cases: proportion([not value for value in known(cases, "slower")])),
    ("step time off by (median / p95)", lambda cases: errors(known(cases, "error"))),
    ("range holds the truth", lambda cases: proportion(known(cases, "in_range"))),
    ("its width (median)", lambda cases: middle(known(cases, "width"))),
    ("nothing advised, nothing missed", lambda cases: proportion([not value for value in known(cases, "missed")])),
    ("advice that does not fit", lambda cases: str(sum(each.misfit for _, each in cases))),
)


def middle(values: list[float]) -> str:
    return f"{median(values):.2f}" if values else "-"


def badness(each: Score) -> float:
    """Advice that loses is worst, then gains that were not seen, then wrong names, then wrong figures."""
    lost = 10 * (1 - each.gain) if each.slower and each.gain else 0.0
    unseen = 5 * math.log(each.best) if each.missed and each.best else 0.0
    return lost + unseen + (not each.right) + each.misfit + min(2.0, abs(each.error or 0.0))


def worst(cases: list[tuple[dict, Score]], count: int = 5) -> str:
    bad = sorted((case for case in cases if badness(case[1]) > 0), key=lambda case: -badness(case[1]))
    lines = []
    for result, each in bad[:count]:
        first = result["findings"][0]
        lines.append(f"- `{result['case']}` ({result['cause']}, {result['condition']}): {result['about']}.")
        lines.append(f'  Said: "{first["title"]}" {first.get("change", "")}'.rstrip())
        lines.append(f"  {measured_text(result, each)}")
    return "\n".join(lines) or "None: every case was right."


def measured_text(result: dict, each: Score) -> str:
    parts = []
    if promised := result["findings"][0].get("speedup"):
        parts.append(f"predicted {promised['expected']:.2f}x ({promised['low']:.2f}x to {promised['high']:.2f}x)")
    if each.gain is not None:
        parts.append(f"measured {each.gain:.2f}x (an interval {each.apart:.2f} wide, high over low)")
    if each.misfit:
        parts.append("the program does nothing of that kind")
    if each.best is not None:
        parts.append(f"the best change tried: {each.best:.2f}x")
    return "; ".join(parts).capitalize() + "."


def markdown(results: list[dict], half: str) -> str:
    chosen = half_of(results, half)
    cases = judged(chosen)
    if not cases:
        return "No results yet."
    halves = {"odd": "odd seeds (never fitted to)", "even": "even seeds and planted cases", "both": "all cases"}
    blocks = [f"{halves[half].capitalize()}, {len(cases)} cases. {provenance(cases)}"]
    blocks += [table({"all": cases}, "", COLUMNS), table(grouped(cases, "condition"), "condition", COLUMNS)]
    for condition, members in grouped(cases, "condition").items():
        by_kind: dict[str, list] = {}
        for member in members:
            by_kind.setdefault(kind_of_cure(member[0]["cause"]), []).append(member)
        blocks.append(f"By what the cure does, {condition}:\n\n{table(dict(sorted(by_kind.items())), 'cure', COLUMNS)}")
        blocks.append(f"By cause, {condition}:\n\n{table(grouped(members, 'cause'), 'planted', COLUMNS)}")
    blocks.append(f"The worst cases:\n\n{worst(cases)}")
    blocks += left_out(chosen)
    return "\n\n".join(blocks)


def provenance(cases: list[tuple[dict, Score]]) -> str:
    """What the figures are of, and how long each program was recorded."""

    def listed(member: str) -> str:
        return ", ".join(sorted({str(result[member]) for result, _ in cases if member in result}))

    return f"Recorded for {listed('seconds')} s; commit {listed('commit')}; {listed('machine')}.".replace(
        "commit ; ", ""
    )


def left_out(results: list[dict]) -> list[str]:
    lines = [f"- `{r['case']}`: {r['skipped']}" for r in results if "skipped" in r]
    lines += [f"- `{r['case']}` failed: {r['failed'].splitlines()[0][:160]}" for r in results if "failed" in r]
    return ["Not measured:\n\n" + "\n".join(lines)] if lines else []
