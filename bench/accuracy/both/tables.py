"""What both parts of the exam need for their tables: intervals, quantiles, results on file, text in a page."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable
from pathlib import Path
from statistics import median

BEGIN, END = "<!-- exam: begin -->", "<!-- exam: end -->"
DEVICE_MARKS = "<!-- exam device: begin -->", "<!-- exam device: end -->"
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


def proportion(values: list[bool]) -> str:
    if not values:
        return "-"
    low, high = wilson(sum(values), len(values))
    return f"{sum(values)} of {len(values)} ({100 * low:.0f} to {100 * high:.0f} %)"


def errors(values: list[float], unit: str = "%") -> str:
    """Median and 95th percentile of the sizes of relative errors."""
    sizes = [abs(value) for value in values]
    return f"{100 * median(sizes):.1f} / {100 * percentile(sizes, 0.95):.1f} {unit}" if sizes else "-"


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


def grouped(cases: list[tuple[dict, object]], member: str) -> dict[str, list]:
    """Results with their scores, by a member of the result."""
    groups: dict[str, list] = {}
    for case in sorted(cases, key=lambda each: each[0][member]):
        groups.setdefault(case[0][member], []).append(case)
    return groups


def table(groups: dict[str, list], what: str, columns: tuple[tuple[str, Callable[[list], str]], ...]) -> str:
    lines = ["| " + " | ".join([what, "cases", *(name for name, _ in columns)]) + " |"]
    lines.append("|" + "---|" * (len(columns) + 2))
    for name, cases in groups.items():
        cells = [name, str(len(cases)), *(cell(cases) for _, cell in columns)]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def write_into(page: Path, text: str, begin: str = BEGIN, end: str = END) -> None:
    """Between the two marks of a page; what stands around them stays."""
    before, _, rest = page.read_text().partition(begin)
    _, marked, after = rest.partition(end)
    if not marked:
        raise ValueError(f"{page} has no marks '{begin}' and '{end}' to write between")
    page.write_text(f"{before}{begin}\n\n{text}\n\n{end}{after}")
