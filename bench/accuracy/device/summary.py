"""Tables over finished pairs: all of them, by device, by what was planted, the worst five."""

from __future__ import annotations

import math
from collections.abc import Iterable
from statistics import median

from both.tables import errors, grouped, half_of, proportion, table

from .score import Score, score

Scored = list[tuple[dict, Score]]


def judged(results: Iterable[dict]) -> Scored:
    return [(result, score(result)) for result in results if "findings" in result]


def known(cases: Scored, member: str) -> list:
    return [value for _, each in cases if (value := getattr(each, member)) is not None]


def width(cases: Scored) -> str:
    widths = known(cases, "width")
    return f"{median(widths):.2f}" if widths else "-"


COLUMNS = (
    ("first finding right", lambda cases: proportion(known(cases, "right"))),
    ("share off by (median / p95)", lambda cases: errors(known(cases, "share_error"), "points")),
    ("step time with the cure off by (median / p95)", lambda cases: errors(known(cases, "error"))),
    ("range holds the truth", lambda cases: proportion(known(cases, "in_range"))),
    ("range, high / low", width),
    ("wrong advice", lambda cases: str(sum(bool(each.misadvised) for _, each in cases))),
)


def as_json(results: list[dict], half: str) -> dict:
    """The figures of the first table and of each cause, for programs."""
    cases = judged(half_of(results, half))
    groups = {"all": cases, **grouped(cases, "cause")}
    return {"half": half, "groups": {name: figures(members) for name, members in groups.items()}}


def figures(cases: Scored) -> dict:
    sizes = sorted(abs(value) for value in known(cases, "error"))
    shares = sorted(abs(value) for value in known(cases, "share_error"))
    widths, inside = known(cases, "width"), known(cases, "in_range")
    made = {"pairs": len(cases), "right": sum(known(cases, "right")), "misadvised": 0}
    made["misadvised"] = sum(bool(each.misadvised) for _, each in cases)
    if sizes:
        made.update(predictions=len(sizes), error_median=median(sizes), error_p95=quantile(sizes, 0.95))
        made.update(range_holds=sum(inside), width_median=median(widths))
    if shares:
        made.update(share_error_median=median(shares), share_error_p95=quantile(shares, 0.95))
    return made


def quantile(ordered: list[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, math.ceil(share * len(ordered)) - 1)]


def badness(case: tuple[dict, Score]) -> float:
    """Advice that must not be given is worst, then wrong names, then wrong figures."""
    each = case[1]
    figure = abs(math.log1p(each.error)) if each.error is not None else 0.0
    return 2.0 * bool(each.misadvised) + (not each.right) + min(1.5, figure) + min(0.5, abs(each.share_error or 0.0))


def worst(cases: Scored, count: int = 5) -> str:
    bad = sorted((case for case in cases if badness(case) > 0.05), key=badness, reverse=True)
    return "\n".join(explained(*case) for case in bad[:count]) or "None: every pair was right."


def explained(result: dict, each: Score) -> str:
    first = result["findings"][0]
    true, predicted = result["true"], result.get("prediction")
    times = [f"{true['before_ns'] / 1e6:.2f} ms a step"]
    if "after_ns" in true:
        cure = " ".join(word for word in (result["change"], result["detail"]) if word)
        times.append(f"{true['after_ns'] / 1e6:.2f} ms with {cure}")
    if predicted:
        low, high = predicted["low"] / 1e6, predicted["high"] / 1e6
        times.append(f"predicted {predicted['expected'] / 1e6:.2f} ms ({low:.2f} to {high:.2f})")
    if "share" in true:
        said = f", said {100 * first['share']:.0f} %" if "share" in first else ""
        times.append(f"true share {100 * true['share']:.0f} %{said}")
    if each.misadvised:
        times.append(f"wrong advice: {each.misadvised[:100]}")
    beside = f", beside {result['second']}" if result["second"] else ""
    what = f"- `{result['case']}` ({result['cause']}{beside}): {result['about']}."
    return f'{what}\n  Said: "{first["title"]}"\n  {"; ".join(times)}.'


def reading(cases: Scored) -> str:
    """Whether the traces were understood at all."""
    off, counted = known(cases, "step_error"), [each for _, each in cases]
    if not off:
        return "No step time could be compared."
    largest = max(abs(value) for value in off)
    return (
        f"Of {len(counted)} recordings, {len(off)} were divided into the steps that were simulated; their step time is "
        f"off by {100 * largest:.2f} % at most."
    )


def with_change(cause: str, cases: Scored) -> str:
    change = cases[0][0]["change"]
    return f"{cause}: {change}" if change else cause


def markdown(results: list[dict], half: str) -> str:
    cases = judged(half_of(results, half))
    if not cases:
        return "No simulated pairs yet."
    halves = {"odd": "odd seeds (never fitted to)", "even": "even seeds", "both": "all seeds"}
    commits = ", ".join(sorted({str(result.get("commit", "?")) for result, _ in cases}))
    blocks = [f"{halves[half].capitalize()}, {len(cases)} simulated pairs; commit {commits}. {reading(cases)}"]
    blocks += [table({"all": cases}, "", COLUMNS), table(grouped(cases, "device"), "device", COLUMNS)]
    by_cause = {with_change(name, members): members for name, members in grouped(cases, "cause").items()}
    blocks += [f"By cause and cure:\n\n{table(by_cause, 'planted', COLUMNS)}"]
    blocks += [f"The worst pairs:\n\n{worst(cases)}"]
    failed = [result for result in half_of(results, half) if "failed" in result]
    if failed:
        lines = [f"- `{result['case']}`: {result['failed'].splitlines()[0][:160]}" for result in failed]
        blocks.append("Not explained:\n\n" + "\n".join(lines))
    return "\n\n".join(blocks)
