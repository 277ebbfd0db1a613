#!/usr/bin/env python3
"""How well `fullbore explain` knows what PyTorch's allocator does, against PyTorch's allocator.

Programs (bench/memory/program.py) run on PyTorch built for CUDA, on a device that computes nothing
(bench/memory/device.c): its allocator, its snapshots, no GPU. Of each program:

  as it was     the replay's reserved bytes against the record, after each request: to the byte?
  expandable    what would be reserved with expandable segments, against the same program run with them
  batch         what a batch of twice the size would take, against the same program with such a batch
  grows         whether memory is said to grow: of the programs that keep their losses only
  fits          on a device of nine tenths of what was reserved: whether the request that was refused fits with
                expandable segments

    bench/memory.py --python PYTHON [--programs N] [--seed N] [--kinds fixed,varied,...]
                    [--checks expandable,batch,fits] [--fullbore PATH] [--json FILE] [--keep FOLDER]
    bench/memory.py --python PYTHON --chance [--programs N] [--seed N]

--chance: programs whose requests and settings are drawn (bench/memory/chance.py); of each whether the replay of the run
as it was is exact.

As it was and whether it grows is asked of each; --checks: of the others, each of which runs a program once more.

PYTHON has torch 2.9.1 from PyPI and the headers of CUDA:

    python3 -m venv cuda && cuda/bin/pip install torch==2.9.1 nvidia-cuda-nvcc-cu12==12.8.93
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import pickle
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator

ROOT = pathlib.Path(__file__).resolve().parents[1]
HERE = ROOT / "bench" / "memory"
KINDS = ["fixed", "varied", "micro", "perceptron", "generates", "keeps", "requests"]
CHECKS = ["expandable", "batch", "fits"]
GIB = 1 << 30


def made_device(python: str, folder: pathlib.Path) -> pathlib.Path:
    """The device as a library; it is the driver's, too, which PyTorch opens by its name."""
    code = "import nvidia.cuda_runtime as r, nvidia.cuda_nvcc as n; print(*r.__path__, *n.__path__)"
    packages = subprocess.run([python, "-c", code], text=True, capture_output=True)
    if packages.returncode != 0:
        raise SystemExit(f"memory.py: {python} lacks CUDA's headers: see --help")
    library = folder / "libcuda.so.1"
    includes = [part for package in packages.stdout.split() for part in ("-I", f"{package}/include")]
    subprocess.run(["gcc", "-shared", "-fPIC", "-O1", *includes, HERE / "device.c", "-o", library], check=True)
    return library


class Laboratory:
    def __init__(self, options: argparse.Namespace, folder: pathlib.Path) -> None:
        self.options, self.folder = options, folder
        self.library = made_device(options.python, folder)

    def environment(self) -> dict[str, str]:
        return {**os.environ, "LD_PRELOAD": str(self.library), "LD_LIBRARY_PATH": str(self.folder)}

    def run(
        self, name: str, *program: object, settings: str = "", device_bytes: int = 80 * GIB
    ) -> tuple[dict, pathlib.Path]:
        snapshot = self.folder / f"{name}.pickle"
        env = {
            **self.environment(),
            "FULLBORE_DEVICE_BYTES": str(device_bytes),
            "PYTORCH_CUDA_ALLOC_CONF": settings,
        }
        words = [self.options.python, HERE / "program.py", *program, "--into", snapshot]
        done = subprocess.run([str(word) for word in words], env=env, text=True, stdout=subprocess.PIPE, check=True)
        return json.loads(done.stdout.splitlines()[-1]), snapshot

    def explained(self, snapshot: pathlib.Path) -> dict:
        words = [self.options.fullbore, "explain", snapshot, "--what-if", "batch=2x", "--json", "-"]
        done = subprocess.run([str(word) for word in words], text=True, stdout=subprocess.PIPE, check=True)
        return json.loads(done.stdout)["devices"][0]

    def look_at(self, kind: str, seed: int) -> dict:
        name = f"{kind}-{seed}"
        truth, snapshot = self.run(name, kind, seed)
        account = self.explained(snapshot)
        what_if = {each["change"]: each for each in account["what_if"]}
        row = {"kind": kind, "seed": seed, "events": account["events"], **truth}
        row["off"] = account.get("as_recorded", {}).get("off")
        row["replayed"] = account.get("as_recorded", {}).get("peak_reserved")
        row["grows"], row["judged"] = bool(account["growing"]), bool(what_if)
        if not what_if:
            return row
        checks = self.options.checks
        if "expandable" in checks:
            expandable, _ = self.run(f"{name}-expandable", kind, seed, settings="expandable_segments:True")
            row["expandable"] = [what_if["expandable_segments"]["peak_reserved"], expandable["peak_reserved"]]
        if "batch" in checks and kind != "requests":
            larger, _ = self.run(f"{name}-larger", kind, seed, "--batch", 2)
            row["batch"] = [what_if["batch=2x"]["peak_allocated"], larger["peak_allocated"]]
            row["batch_reserved"] = [what_if["batch=2x"]["peak_reserved"], larger["peak_reserved"]]
        if "fits" in checks:
            row.update(self.fits(kind, seed, truth))
        return row

    def drawn(self) -> Iterator[dict]:
        """Programs by chance, and what the replay makes of each."""
        options = self.options
        words = [options.python, HERE / "chance.py", options.seed, options.programs, "--into", self.folder]
        with subprocess.Popen(list(map(str, words)), env=self.environment(), text=True, stdout=subprocess.PIPE) as ran:
            for line in ran.stdout:
                row = json.loads(line)
                snapshot = self.folder / f"chance-{row['seed']}.pickle"
                replay = self.explained(snapshot).get("as_recorded", {})
                row["off"], row["replayed"] = replay.get("off"), replay.get("peak_reserved")
                if options.keep is None:
                    snapshot.unlink()
                yield row
        if ran.returncode != 0:
            raise SystemExit("memory.py: a program by chance failed")

    def fits(self, kind: str, seed: int, truth: dict) -> dict:
        """On a device that is a little too small for the run as it is."""
        small = truth["peak_reserved"] * 9 // 10
        failed, snapshot = self.run(f"{kind}-{seed}-small", kind, seed, device_bytes=small)
        if not failed["oom"]:
            return {"small": "fits"}
        what_if = {each["change"]: each for each in self.explained(snapshot)["what_if"]}
        if not what_if:
            return {"small": "not judged"}
        with_it = {"settings": "expandable_segments:True", "device_bytes": small}
        _, alike = self.run(f"{kind}-{seed}-small-expandable", kind, seed, **with_it)
        went_on = blocks_in(alike) > blocks_in(snapshot)  # beyond the request that was refused
        return {"small": "oom", "fits": ["reserved_at_refusal" in what_if["expandable_segments"], went_on]}


def blocks_in(snapshot: pathlib.Path) -> int:
    """How many blocks were asked for and given, in a snapshot of ours."""
    events = pickle.loads(snapshot.read_bytes())["device_traces"][0]
    return sum(event["action"] == "alloc" for event in events)


def off(rows: list[dict], what: str) -> str:
    ratios = [abs(row[what][0] / row[what][1] - 1) for row in rows if what in row]
    if not ratios:
        return "-"
    exact = sum(ratio == 0 for ratio in ratios)
    p95 = sorted(ratios)[min(len(ratios) - 1, int(0.95 * len(ratios)))]
    return f"{exact} of {len(ratios)}; {statistics.median(ratios):.1%}, {p95:.1%}"


def table(rows: list[dict]) -> list[str]:
    lines = [
        "| programs | as it was, to the byte | judged | expandable to the byte; off (median, p95) | batch: in use |"
        " batch: reserved | grows: right | fits: right |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for kind in [*KINDS, "all"]:
        these = [row for row in rows if kind in (row["kind"], "all")]
        if not these:
            continue
        exact = sum(map(is_exact, these))
        asked = [row for row in these if "fits" in row]
        right = sum(row["fits"][0] == row["fits"][1] for row in asked)
        told = sum(row["grows"] == (row["kind"] == "keeps") for row in these)
        lines.append(
            f"| {len(these)} {kind} | {exact} of {len(these)} | {sum(row['judged'] for row in these)} |"
            f" {off(these, 'expandable')} | {off(these, 'batch')} | {off(these, 'batch_reserved')} |"
            f" {told} of {len(these)} | {right} of {len(asked)} |"
        )
    return lines


def is_exact(row: dict) -> bool:
    return row["off"] == 0 and row["replayed"] == row["peak_reserved"]


# What may be drawn, the first that fits: what the replay does not do, then settings, then the rest.
TRAITS = {
    "with pools of the program's own": lambda row: row["pools"] > 0,
    "`garbage_collection_threshold`": lambda row: "garbage_collection_threshold" in row["settings"],
    "`expandable_segments`": lambda row: "expandable_segments" in row["settings"],
    "`max_split_size_mb`": lambda row: "max_split_size_mb" in row["settings"],
    "`roundup_power2_divisions`": lambda row: "roundup_power2_divisions" in row["settings"],
    "no setting": lambda row: True,
}


def table_of_drawn(rows: list[dict]) -> list[str]:
    lines = ["| programs | exact | off, and the report says so | of which requests were refused |", "|---|---|---|---|"]
    for name in [*TRAITS, "all"]:
        these = [row for row in rows if name in (next(each for each in TRAITS if TRAITS[each](row)), "all")]
        exact, refused = sum(map(is_exact, these)), sum(row["refused"] > 0 for row in these)
        told = sum(row["off"] != 0 for row in these)
        lines.append(f"| {len(these)} {name} | {exact} of {len(these)} | {told} of {len(these) - exact} | {refused} |")
    return lines


def note(row: dict, rows: list[dict], into: pathlib.Path | None) -> None:
    rows.append(row)
    print(json.dumps(row), file=sys.stderr, flush=True)
    if into:
        into.write_text("".join(json.dumps(each) + "\n" for each in rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", required=True, help="an interpreter with a torch that is built for CUDA")
    parser.add_argument("--programs", type=int, default=10, help="of each kind (10)")
    parser.add_argument("--seed", type=int, default=0, help="of the first")
    parser.add_argument("--kinds", type=lambda text: text.split(","), default=KINDS)
    parser.add_argument("--chance", action="store_true", help="programs that are drawn")
    parser.add_argument("--checks", type=lambda text: text.split(","), default=CHECKS)
    parser.add_argument("--fullbore", default=str(ROOT / "build" / "release" / "fullbore"))
    parser.add_argument("--json", type=pathlib.Path, help="each program, one a line")
    parser.add_argument("--keep", type=pathlib.Path, help="where the snapshots are left")
    options = parser.parse_args()
    if unknown := set(options.kinds) - set(KINDS):
        parser.error(f"{', '.join(sorted(unknown))}: not a kind; there are {', '.join(KINDS)}")
    if unknown := set(options.checks) - set(CHECKS):
        parser.error(f"{', '.join(sorted(unknown))}: not a check; there are {', '.join(CHECKS)}")
    rows = []
    with tempfile.TemporaryDirectory(prefix="fullbore-memory-") as made:
        folder = options.keep or pathlib.Path(made)
        folder.mkdir(parents=True, exist_ok=True)
        laboratory = Laboratory(options, folder.resolve())
        if options.chance:
            for row in laboratory.drawn():
                note(row, rows, options.json)
            print("\n".join(table_of_drawn(rows)))
            return
        for seed in range(options.seed, options.seed + options.programs):
            for kind in options.kinds:
                note(laboratory.look_at(kind, seed), rows, options.json)
    print("\n".join(table(rows)))


if __name__ == "__main__":
    main()
