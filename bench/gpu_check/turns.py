"""`fullbore compare` in slices of both, beside what the same two programs show in one process."""

from __future__ import annotations

import json
from typing import Any

from evidence import HERE, Failed, Place, Row

# The group of cures.py and the change of it; "": the program against itself.
PAIRS = (("resnet-small", "no-sync"), ("gpt", "precision"), ("copies", "side-stream"), ("gpt", ""))
ON_THE_HOST = (("mlp", "no-sync"),)
BUDGET_S = 110  # two pairs, with their starts


def turns(place: Place) -> list[Row]:
    rows = []
    for group, change in PAIRS if place.has_device else ON_THE_HOST:
        if place.time_is_up(BUDGET_S):
            rows.append(Row(f"{group}: compare", "the time was up"))
            continue
        try:
            rows += compared(place, group, change)
        except Failed as why:
            rows.append(Row(f"{group}: compare", str(why), "an answer", False))
    return rows


def compared(place: Place, group: str, change: str) -> list[Row]:
    name = f"turns-{group}-{change or 'itself'}"
    words = [HERE / "cures.py", group, place.directory, change or "no-change"]
    pair: dict[str, Any] = json.loads(place.call(f"{name}-truth", place.python, *words, limit_s=90))["pairs"][0]
    if "failed" in pair:
        raise Failed(pair["failed"])
    programs = [f"{place.python} {HERE / 'programs.py'} {each} --seconds 1000" for each in pair["words"]]
    sides = ["--baseline", programs[0], "--candidate", programs[1]]
    more = ["--budget", f"{BUDGET_S}s", "-o", place.file("runs"), "--json", "-"]
    answer = json.loads(place.call(name, place.fullbore, "compare", *sides, *more, limit_s=BUDGET_S + 30))
    gain = answer["gain"] or {}
    seen = "{expected:.3f}x ({low:.2f} to {high:.2f})".format(**gain) if gain else "no gain"
    least, most = pair["gains"]
    what = f"{group}: compare, {change or 'the same twice'}"
    return [
        Row(
            what,
            f"{seen}, {len(answer['pairs'])} pairs",
            f"{pair['gain']:.3f}x ({least:.2f} to {most:.2f}) in one process",
            bool(gain) and gain["low"] <= most and least <= gain["high"],
        ),
        Row(f"{what}: turns", answer["turns"], "slices", answer["turns"] == "slices" if place.has_device else None),
    ]
