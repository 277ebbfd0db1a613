"""Tables over finished cases, as markdown: all of them, by cause, the worst five."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable
from pathlib import Path
from statistics import median

from .score import Score, score

BEGIN, END = "<!-- exam: begin -->", "<!-- exam: end -->"
Z95 = 1.959964


def wilson(hits: int, of: int) -> tuple[float, float]:
    """The 95 % interval of a proportion; honest for small numbers, unlike hits/of plus or minus."""
    if of == 0:
        return 0.0, 1.0
    share, square = hits / of, Z95**2
    centre = (share + square / (2 * of)) / (1 + square / of)
    half = Z95 / (1 + square / of) * math.sqrt(share * (1 - share) / of + square / (4 * of**2))
    return max(0.0, centre - half), min(1.0, centre + half)


def percentile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, math.ceil(share * len(ordered)) - 1))]


def read_results(path: Path) -> list[dict]:
    """One JSON object per line. A line cut short by a power failure is left out: its case runs again."""
    results = []
    for line in path.read_text().splitlines() if path.exists() else []:
        try:
            results.append(json.loads(line))
        except ValueError:
            continue
    return results


def half_of(results: Iterable[dict], half: str) -> list[dict]:
    """Odd seeds are only measured; constants may be fitted to even ones and to the planted cases of the tests."""
    if half == "both":
        return list(results)
    odd = lambda name: name.isdigit() and int(name) % 2 == 1  # noqa: E731
    return [result for result in results if odd(result["case"]) == (half == "odd")]


def judged(results: Iterable[dict]) -> list[tuple[dict, Score]]:
    return [(result, score(result)) for result in results if "halves" in result]


def proportion(values: list[bool]) -> str:
    if not values:
        return "-"
    low, high = wilson(sum(values), len(values))
    return f"{sum(values)} of {len(values)} ({100 * low:.0f} to {100 * high:.0f} %)"


def errors(values: list[float]) -> str:
    sizes = [abs(value) for value in values]
    return f"{100 * median(sizes):.1f} / {100 * percentile(sizes, 0.95):.1f} %" if sizes else "-"


def known(cases: list[tuple[dict, Score]], member: str) -> list:
    return [value for _, each in cases if (value := getattr(each, member)) is not None]


COLUMNS: tuple[tuple[str, Callable[[list[tuple[dict, Score]]], str]], ...] = (
    ("first finding right", lambda cases: proportion(known(cases, "right"))),
    ("advice not slower", lambda cases: proportion([not value for value in known(cases, "slower")])),
    ("step time off by (median / p95)", lambda cases: errors(known(cases, "error"))),
    ("range holds the truth", lambda cases: proportion(known(cases, "in_range"))),
    ("nothing advised, nothing missed", lambda cases: proportion([not value for value in known(cases, "missed")])),
    ("advice that does not fit", lambda cases: str(sum(each.misfit for _, each in cases))),
)


def table(groups: dict[str, list[tuple[dict, Score]]], what: str) -> str:
    lines = ["| " + " | ".join([what, "cases", *(name for name, _ in COLUMNS)]) + " |"]
    lines.append("|" + "---|" * (len(COLUMNS) + 2))
    for name, cases in groups.items():
        cells = [name, str(len(cases)), *(cell(cases) for _, cell in COLUMNS)]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def grouped(cases: list[tuple[dict, Score]], member: str) -> dict[str, list[tuple[dict, Score]]]:
    groups: dict[str, list[tuple[dict, Score]]] = {}
    for case in sorted(cases, key=lambda each: each[0][member]):
        groups.setdefault(case[0][member], []).append(case)
    return groups


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
        parts.append(f"measured {each.gain:.2f}x")
    if each.misfit:
        parts.append("the program does nothing of that kind")
    if each.best is not None:
        parts.append(f"the best change tried: {each.best:.2f}x")
    return "; ".join(parts).capitalize() + f"; noise {100 * each.noise:.0f} %."


def markdown(results: list[dict], half: str) -> str:
    chosen = half_of(results, half)
    cases = judged(chosen)
    if not cases:
        return "No results yet."
    halves = {"odd": "odd seeds (never fitted to)", "even": "even seeds and planted cases", "both": "all cases"}
    blocks = [f"{halves[half].capitalize()}, {len(cases)} cases. {provenance(cases)}"]
    blocks += [table({"all": cases}, ""), table(grouped(cases, "condition"), "condition")]
    for condition, members in grouped(cases, "condition").items():
        blocks.append(f"By cause, {condition}:\n\n{table(grouped(members, 'cause'), 'planted')}")
    blocks.append(f"The worst cases:\n\n{worst(cases)}")
    blocks += left_out(chosen)
    return "\n\n".join(blocks)


def provenance(cases: list[tuple[dict, Score]]) -> str:
    """What the figures are of, and how long each half was."""

    def listed(member: str) -> str:
        return ", ".join(sorted({str(result[member]) for result, _ in cases if member in result}))

    return f"Halves of {listed('seconds')} s; commit {listed('commit')}; {listed('machine')}.".replace("commit ; ", "")


def left_out(results: list[dict]) -> list[str]:
    lines = [f"- `{r['case']}`: {r['skipped']}" for r in results if "skipped" in r]
    lines += [f"- `{r['case']}` failed: {r['failed'].splitlines()[0][:160]}" for r in results if "failed" in r]
    return ["Not measured:\n\n" + "\n".join(lines)] if lines else []


def write_into(page: Path, text: str) -> None:
    """Between the two marks of a page; what stands around them stays."""
    before, _, rest = page.read_text().partition(BEGIN)
    _, marked, after = rest.partition(END)
    if not marked:
        raise ValueError(f"{page} has no marks '{BEGIN}' and '{END}' to write between")
    page.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{after}")
