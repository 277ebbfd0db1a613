#!/usr/bin/env python3
"""Is a trial the run? Programs of the exam, and some that write checkpoints, logs and a database, as they are: under
`fullbore run`, and as a trial of `fullbore measure` whose writes lie in an overlay. In turns, twice each.

    bench/tune/trial_is_run.py [--fullbore PATH] [--cases N] [--seconds S] [--rounds N] [--json FILE]

A trial agrees with the run where their rates differ by no more than 5 %, or than two runs of the same kind do. Figures
from a machine that does anything else are worthless.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
from statistics import median

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench" / "accuracy"))

from live.laboratory import LEFT_OUT  # noqa: E402
from live.programs import generated  # noqa: E402

SAME = 0.05
UNITS = ("samples_per_s", "steps_per_s")
NEEDED = {
    "decode",
    "no-workers",
    "checkpoint",
    "logging",
    "validation",
    "healthy",
    "collate",
    "own-loader",
    "slow-sample",
}
# The first so many odd seeds of each cause.
OF_EACH = 2

WRITES = """
import os, sqlite3, sys, time, torch
torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
x, y = torch.rand(64, 256), torch.randint(10, (64,))
end, step = time.monotonic() + float(sys.argv[1]), 0
{before}
while time.monotonic() < end:
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    step += 1
    {each}
"""
WRITERS = {
    "checkpoint each 20 steps": ("", "if step % 20 == 0: torch.save(model.state_dict(), 'model.pt')"),
    "checkpoint, synced": (
        "",
        "if step % 50 == 0: torch.save(model.state_dict(), 'new.pt'); os.sync(); os.replace('new.pt', 'model.pt')",
    ),
    "log line each step": ("log = open('train.log', 'a')", "log.write(f'{step} {loss.item()}\\n'); log.flush()"),
    "database each 10 steps": (
        "base = sqlite3.connect('runs.db'); base.execute('create table if not exists losses (step, loss)')",
        "if step % 10 == 0: base.execute('insert into losses values (?, ?)', (step, loss.item())); base.commit()",
    ),
}


def programs(count: int, seconds: float) -> dict[str, tuple[str, list[str], dict[str, str]]]:
    """By name: text, arguments and environment."""
    found = {name: (WRITES.format(before=one, each=two), [str(seconds)], {}) for name, (one, two) in WRITERS.items()}
    taken: dict[str, int] = {}
    for seed in range(1, 400, 2):
        case = generated(seed)
        if len(found) >= count:
            break
        if case.cause not in NEEDED or case.needs or taken.get(case.cause, 0) >= OF_EACH:
            continue
        taken[case.cause] = taken.get(case.cause, 0) + 1
        asked = {case.clock: "clock.json", **({"seconds": seconds} if case.takes("seconds") else {})}
        started = case.invocation(asked)
        found[f"{case.name} {case.cause}"] = (started.script, started.arguments, started.environment)
    return found


def rates(
    fullbore: str, program: tuple[str, list[str], dict[str, str]], rounds: int, seconds: float
) -> dict[str, list]:
    """By kind, of each round."""
    text, arguments, wanted = program
    environment = {k: v for k, v in os.environ.items() if not k.startswith(LEFT_OUT)} | wanted
    made: dict[str, list] = {"run": [], "trial": []}
    with tempfile.TemporaryDirectory() as folder:
        photos = ROOT / "examples" / "make_photos.py"
        subprocess.run([sys.executable, photos, f"{folder}/photos", "--count", "48"], check=True, capture_output=True)
        pathlib.Path(folder, "train.py").write_text(text)
        command = ["--", sys.executable, "train.py", *arguments]
        for _ in range(rounds):
            for kind in made:
                words = {
                    "run": [fullbore, "run", "-q", "-o", "runs", "--json", f"{kind}.json"],
                    # The program may end before the trial does.
                    "trial": [fullbore, "measure", "-o", "runs", "--json", f"{kind}.json", "--most", f"{seconds:.0f}s"],
                }[kind]
                done = subprocess.run([*words, *command], cwd=folder, env=environment, capture_output=True, text=True)
                said = pathlib.Path(folder, f"{kind}.json")
                if not said.exists():
                    raise SystemExit(f"{kind}: {done.stderr}")
                made[kind].append(rates_of(kind, json.loads(said.read_text())))
                said.unlink()
    return made


def rates_of(kind: str, said: dict) -> dict[str, float | None]:
    """By their unit: a trial says one of them, a run's report both where it knows them."""
    known = said if kind == "trial" else said.get("throughput") or {}
    return {unit: known.get(unit) for unit in UNITS}


def comparable(made: dict[str, list[dict[str, float | None]]]) -> dict[str, list[float]] | None:
    """The rates in the first unit that all know."""
    for unit in UNITS:
        rates = {kind: [each[unit] for each in all_of_it] for kind, all_of_it in made.items()}
        if all(rate for each in rates.values() for rate in each):
            return rates
    return None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fullbore", default=str(ROOT / "build/release/fullbore"))
    parser.add_argument("--cases", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    if options.rounds < 2:
        parser.error("--rounds: two of a kind at least, to know by how much they differ")
    rows, agree, counted = [], 0, 0
    for name, program in programs(options.cases, options.seconds).items():
        made = rates(str(pathlib.Path(options.fullbore).resolve()), program, options.rounds, options.seconds)
        rows.append({"program": name, **made})
        made = comparable(made)
        if made is None:
            print(f"{name:28} no rate in the same unit", flush=True)
            continue
        counted += 1
        ratio = median(made["trial"]) / median(made["run"])
        noise = max(max(each) / min(each) - 1 for each in made.values())
        same = abs(ratio - 1) <= max(SAME, noise)
        agree += same
        print(
            f"{name:28} run {median(made['run']):9.1f}/s, trial {median(made['trial']):9.1f}/s: {ratio:.3f}"
            f" (two of a kind differ by {noise:4.0%}){'' if same else '  <-- not the same'}",
            flush=True,
        )
    print(f"{agree} of {counted} trials agree with the run")
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
