"""Everything of fullbore that needs a GPU, on one, in minutes: what held, and what did not.

    make gpu-check [WHEEL=dist/fullbore-....whl] [ARGUMENTS="--only cures"]
    python3 bench/gpu_check --fullbore PROGRAM [--python PYTHON] [--into DIR] [--only NAME,...] [--seconds 480]
    python3 bench/gpu_check --fullbore PROGRAM --only cures,strangers --groups strangers    of programs by strangers

Wants an NVIDIA GPU, a Python with a torch built for CUDA, and no network. It changes no setting of the device. Checks
that no time is left for are named. What was made (traces, reports, logs) stays in the directory.

Without a GPU the programs train on the CPU and the checks of the device are left out: that shows that the check itself
works, and nothing else.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path
from typing import Callable

sys.path.insert(0, str(Path(__file__).resolve().parent))

import live  # noqa: E402
import tuning  # noqa: E402
import turns  # noqa: E402
from evidence import HERE, Failed, Missing, Place, Row, say  # noqa: E402

ROOT = HERE.parents[1]
GROUPS = "gpt gpt-small mlp-loop resnet loader copies resnet-small mlp bytes allocator pauses checkpoints".split()
STRANGERS = "bert-finetune video detection lstm-lm gnn diffusion dqn simclr gan dlrm".split()


def cures(place: Place) -> list[Row]:
    """What torch's profiler recorded, what fullbore predicts from that, and what the cure brought."""
    rows = []
    for group in place.groups:
        if place.time_is_up():
            rows.append(Row(f"{group}: cures", "the time was up"))
            continue
        try:
            measured = json.loads(
                place.call(f"cures-{group}", place.python, HERE / "cures.py", group, place.directory, limit_s=120)
            )
        except Missing as why:
            rows.append(Row(f"{group}: cures", str(why)))
            continue
        except Failed as why:
            rows.append(Row(f"{group}: cures", str(why), "figures", False))
            continue
        for pair in measured["pairs"]:
            rows += cure(place, group, pair, measured["recording"]["without_ns"])
        rows.append(recorder_cost(group, **measured["recording"]))
    return rows


def recorder_cost(group: str, without_ns: float, recorded_ns: float, events: float) -> Row:
    event_us = (recorded_ns - without_ns) / events / 1e3
    seen = f"{recorded_ns / 1e6:.2f} ms, {event_us:.1f} us an event"
    return Row(f"{group}: a step under torch's profiler", seen, f"{without_ns / 1e6:.2f} ms without it")


def cure(place: Place, group: str, pair: dict, step_ns: float) -> list[Row]:
    """What is predicted from the recording alone, and where it is said what a step takes without the profiler."""
    different = ", ".join(f"{name}={value}" for name, value in pair["different"].items())
    what = f"{group}: {pair['change']} ({different})"
    if "failed" in pair:
        return [Row(what, pair["failed"])]
    least, most = pair["gains"]  # of the turns: so much the machine itself varies
    seen = f"{pair['gain']:.2f}x ({least:.2f} to {most:.2f})"
    rows = []
    for name, more in ((what, ()), (f"{what}, --step-time", ("--step-time", f"{step_ns / 1e6:.3f}ms"))):
        try:
            said = place.explain(place.file(f"{group}.pt.trace.json.gz"), *pair["change"].split(","), more=more)
        except (Failed, ValueError) as why:
            rows.append(Row(name, str(why), "a prediction", False))
            continue
        replay = said.get("replay", {})
        if replay.get("refused") or not replay.get("what_if"):
            why = "; ".join(each["why"] for each in replay.get("refused", [])) or "nothing"
            return [Row(what, seen, f"not predicted: {why}"[:120])]
        speedup = replay["what_if"][-1]["speedup"]
        low, high = speedup["low"], speedup["high"]
        text = f"{speedup['expected']:.2f}x ({low:.2f} to {high:.2f}) predicted"
        rows.append(Row(name, seen, text, least <= high and low <= most))
    return rows


def hook(place: Place) -> list[Row]:
    """What the hook costs with this build of torch: the table of bench/hook_cost.py, on the device, too."""
    figures = place.file("hook_cost.json")
    kinds = ["batch1", "1ms"] + (["device1ms", "device5ms", "device50ms"] if place.has_device else [])
    only = [word for kind in kinds for word in ("--only", kind)]
    words = [ROOT / "bench" / "hook_cost.py", "--python", place.python, "--rounds", 12, "--json", figures, *only]
    native = next(iter(place.fullbore.parents[1].glob("share/fullbore/python/fullbore/hook/core/_native*.so")), None)
    if native is not None:
        words += ["--native", native.parent]
    place.call("hook-cost", place.python, *words, limit_s=120)
    return [
        Row(f"hook: {title}", figure, wanted, met)
        for title, figure, wanted, met in json.loads(figures.read_text())["table"]
    ]


def loading(place: Place) -> list[Row]:
    """fullbore.data, straight to the device."""
    if not place.has_device:
        return [Row("fullbore.data to the device", "no device")]
    photos = place.file("photos")
    place.call("photos", place.python, ROOT / "examples" / "make_photos.py", photos, "--count", 400, limit_s=60)
    found = json.loads(place.call("batches", place.python, HERE / "batches.py", photos, limit_s=60))
    rows = [Row("fullbore.data: values that differ on the device", str(found["differ"]), "0", found["differ"] == 0)]
    texts = [f"{ours:.0f} and {theirs:.0f}" for ours, theirs in found["rates"]]
    best = max(ours / theirs for ours, theirs in found["rates"])
    return [
        *rows,
        Row("fullbore.data: samples/s, to the device and by .to", "; ".join(texts), "0.95 or more", best >= 0.95),
    ]


CHECKS: dict[str, Callable[[Place], list[Row]]] = {
    "product": live.known_product,
    "faults": live.faults,
    "hook": hook,
    "cures": cures,
    "turns": turns.turns,
    "tune": tuning.tuning,
    "undisturbed": live.undisturbed,
    "loader": loading,
    "strangers": live.strangers,
}
ON_DEVICES_ONLY = {"product"}
ON_REQUEST_ONLY = {"strangers", "turns"}


def device_of(python: str) -> dict[str, str]:
    """As torch names it; empty without one."""
    code = (
        "import json, torch; has = torch.cuda.is_available(); print(json.dumps({'torch': torch.__version__, "
        "**({'gpu': torch.cuda.get_device_name(0)} if has else {})}))"
    )
    done = subprocess.run([python, "-c", code], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"gpu_check: {python} cannot import torch\nhint: --python with one that does")
    return json.loads(done.stdout.splitlines()[-1])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fullbore", type=Path, default=ROOT / "build" / "release" / "fullbore")
    parser.add_argument("--python", default=sys.executable, help="with torch (default: this one)")
    parser.add_argument("--into", type=Path, default=ROOT / ".fullbore" / "gpu-check", help="what is made stays here")
    usual = [name for name in CHECKS if name not in ON_REQUEST_ONLY]
    parser.add_argument("--only", default=",".join(usual), metavar="NAME,...", help=f"of {', '.join(CHECKS)}")
    groups = [*GROUPS, "strangers", *STRANGERS]
    parser.add_argument("--groups", default=",".join(GROUPS), metavar="NAME,...", help=f"of cures: {', '.join(groups)}")
    parser.add_argument("--seconds", type=float, default=480, help="no check begins later (default: 480)")
    parser.add_argument("--run-for", type=float, default=8, help="seconds of each recorded run (default: 8)")
    options = parser.parse_args()
    for what, names, known in (("check", options.only, list(CHECKS)), ("group", options.groups, groups)):
        unknown = [name for name in names.split(",") if name not in known]
        if unknown:
            sys.exit(f"gpu_check: no {what} '{unknown[0]}'\nhint: {', '.join(known)}")
    if not options.fullbore.exists():
        sys.exit(f"gpu_check: no {options.fullbore}\nhint: make build, or WHEEL=... of scripts/wheel.sh")
    about = device_of(options.python)
    options.into.mkdir(parents=True, exist_ok=True)
    until = time.monotonic() + options.seconds
    into, device = options.into.resolve(), about.get("gpu", "no GPU: this shows only that the check works")
    place = Place(options.fullbore.resolve(), options.python, into, "gpu" in about, options.run_for, until)
    given = options.groups.split(",")
    place.groups = [group for name in given for group in (STRANGERS if name == "strangers" else [name])]
    say(f"{device}, torch {about['torch']}; {into}")
    results = {"about": {**about, "python": platform.python_version(), "cpus": os.cpu_count()}, "checks": {}}
    for name in options.only.split(","):
        rows, took_s = checked(place, name)
        results["checks"][name] = {"seconds": took_s, "rows": [vars(row) for row in rows]}
        place.file("results.json").write_text(json.dumps(results, indent=1))
        print("\n".join([f"\n{name} ({took_s:.0f} s)", *(line_of(row) for row in rows)]), flush=True)
    rows = [row for check in results["checks"].values() for row in check["rows"]]
    held, judged = (sum(row["held"] is value for row in rows) for value in (True, False))
    print(f"\n{held} of {held + judged} held; {place.file('results.json')}")
    return 1 if judged else 0


def checked(place: Place, name: str) -> tuple[list[Row], float]:
    begin = time.monotonic()
    if place.time_is_up():
        return [Row(name, "not run: the time was up")], 0
    if name in ON_DEVICES_ONLY and not place.has_device:
        return [Row(name, "not run: no device")], 0
    try:
        rows = CHECKS[name](place)
    except (Failed, OSError, KeyError, ValueError, StopIteration) as why:
        rows = [Row(name, f"{type(why).__name__}: {why}", "an answer", False)]
    return rows, time.monotonic() - begin


def line_of(row: Row) -> str:
    mark = {True: "held", False: "NOT HELD", None: ""}[row.held]
    return f"  {row.what:<58}  {row.seen:<34}  {row.wanted:<34}  {mark}".rstrip()


if __name__ == "__main__":
    sys.exit(main())
