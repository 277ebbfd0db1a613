"""`fullbore tune` on a device: a batch that its memory cannot hold, and what precision, compile and the rest bring."""

from __future__ import annotations

import json
from typing import Any

from evidence import HERE, Failed, Place, Row

TOO_LARGE = 4096  # 4,096 * 512 tokens * 32,000 words * 4 bytes: 268 GB of logits


def tuned(place: Place, name: str, *words: object, limit_s: float) -> dict[str, Any]:
    answer = place.file(f"{name}.tune.json")
    ours = [place.fullbore, "tune", "-o", place.file("runs"), "--json", answer, "--force"]
    place.call(name, *ours, *words, limit_s=limit_s)
    return json.loads(answer.read_text())


def model_for(place: Place) -> str:
    return "gpt" if place.has_device else "mlp"


def out_of_memory(place: Place) -> list[Row]:
    """A batch that does not fit is an outcome, not an end; and memory is what torch says it is."""
    sizes = (4, 16, TOO_LARGE) if place.has_device else (1, 2)
    given = ["--set", "batch=" + ",".join(map(str, sizes)), "--exhaustive", "--budget", "70s", "--most", "4s"]
    command = [
        "--",
        place.python,
        HERE / "programs.py",
        model_for(place),
        "batch={batch}",
        "precision=tf32",
        "--seconds",
        600,
    ]
    answer = tuned(place, "tune-memory", *given, *command, limit_s=120)
    outcomes = {str(trial["settings"].get("batch")): trial["outcome"] for trial in answer["trials"]}
    rows = [Row(f"tune: batch {size}", outcomes.get(str(size), "not tried"), *wanted(size, outcomes)) for size in sizes]
    own = place.program("memory", model_for(place), f"batch={sizes[0]}", "precision=tf32", "--seconds", 4, limit_s=60)
    peak = next(
        (t["peak_memory_bytes"] for t in answer["trials"] if str(t["settings"].get("batch")) == str(sizes[0])), None
    )
    if place.has_device:
        ratio = None if peak is None else peak / own["peak_bytes"]
        seen = "not recorded" if ratio is None else f"{ratio:.2f} of torch's own {own['peak_bytes'] / 2**20:.0f} MiB"
        rows.append(
            Row("tune: a trial's peak of memory", seen, "0.98 to 1.5", ratio is not None and 0.98 <= ratio <= 1.5)
        )
    return rows


def wanted(size: int, outcomes: dict[str, str]) -> tuple[str, bool]:
    expected = "out-of-memory" if size == TOO_LARGE else "ok"
    return expected, outcomes.get(str(size)) == expected


def knobs(place: Place) -> list[Row]:
    """What changes how exactly is computed, asked for: on a device with tensor cores it should be found."""
    given = ["--knobs", "precision,tf32,optimizer,compile", "--budget", "2m", "--most", "4s"]
    program = [place.python, HERE / "programs.py", model_for(place), "batch=8"]
    answer = tuned(place, "tune-knobs", *given, "--", *program, "--seconds", 600, limit_s=170)
    rows = []
    for trial in answer["trials"]:
        if not trial.get("proves"):
            rate = trial["samples_per_s"] or trial["steps_per_s"]
            said = trial["outcome"] if rate is None else f"{trial['outcome']}, {rate:.1f} {trial['unit']}"
            rows.append(Row(f"tune: {words(trial['settings'])}", said))
    found = answer["recommended"]
    settings = found["settings"] if found else {}
    held = bool({"precision", "tf32"} & set(settings)) if place.has_device else None
    return [*rows, Row("tune: recommended", words(settings), "16 bit or TF32", held)]


def words(settings: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in settings.items()) or "as it is"


def tuning(place: Place) -> list[Row]:
    rows = []
    for part in (out_of_memory, knobs):
        try:
            rows += part(place)
        except Failed as why:
            rows.append(Row(part.__name__, str(why), "an answer", False))
    return rows
