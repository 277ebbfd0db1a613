#!/usr/bin/env python3
"""Measures the loader side by side with its peers and with the ceiling, on the same files for the same output.

    run.py [DATA] [--variants small,large,tar,text] [--threads 1,2] [--rounds 3] [--seconds 4] [--json FILE]
    run.py --peers DIR --into docs/measurements.md      everything, and the tables put in their place there
    run.py --short        one round of a second each, the small photos: to see that everything still runs

DATA is made by make_data.py (default: build/loader-data, made when missing). Peers come from setup_peers.sh; those
that are not installed are left out with a line. A contender with N threads is held to N cores. Runs are interleaved
(A B C A B C), ratios are taken within a round, and the medians of the rounds are shown with their extremes.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
DEBIAN_PYTHON = "/usr/bin/python3"
CEILING, OURS = "ceiling", "fullbore (C++)"
DATALOADER = "DataLoader, Pillow, torchvision"
BATCH, SIDE = 64, 224
BEGIN, END = "<!-- bench/loader/run.py -->", "<!-- end -->"
STD = (0.229, 0.224, 0.225)
TIMEOUT_S = 180

# variant -> kind for those who read files, kind for those who read archives
VARIANTS = {
    "small": ("small", "image"),
    "large": ("large", "image"),
    "tar": ("small-tar", "image-tar"),
    "text": ("text-tar", "text-tar"),
}


@dataclass
class Contender:
    name: str
    command: list[str]
    variants: tuple[str, ...]
    imports: str = ""  # what its Python must be able to import; "": a program
    workers: int | None = None  # processes: runs only with that many threads, and with one thread for 0
    check: bool = True  # the output is comparable pixel by pixel
    reads_files: bool = False  # for the text variant: files rather than shards

    def fits(self, threads: int) -> bool:
        return self.workers is None or max(self.workers, 1) <= threads

    def missing(self) -> str | None:
        if not Path(self.command[0]).exists():
            return f"{self.command[0]} is not there"
        if self.imports:
            done = subprocess.run(
                [self.command[0], "-c", f"import {self.imports}"], env=environment(1), capture_output=True, text=True
            )
            if done.returncode != 0:
                return (done.stderr.strip().splitlines() or ["does not start"])[-1][:160]
        return None


@dataclass
class Result:
    rates: list[float] = field(default_factory=list)
    cpu_ms: list[float] = field(default_factory=list)  # CPU time a sample: what a busy machine distorts least
    first_batch_s: list[float] = field(default_factory=list)
    constructed_s: list[float] = field(default_factory=list)
    peak_pss_mb: float | None = None
    peak_hwm_mb: float | None = None


build_directory = ROOT / "build" / "release"
peers_directory = ROOT / "build" / "peers-venv"


def environment(threads: int) -> dict[str, str]:
    values = dict(os.environ, OMP_NUM_THREADS=str(threads), PYTHONDONTWRITEBYTECODE="1", TF_CPP_MIN_LOG_LEVEL="2")
    libraries = sorted({str(path.parent) for path in (peers_directory / "system").rglob("*.so*")})
    if libraries:
        values["LD_LIBRARY_PATH"] = ":".join(libraries)
    values["PYTHONPATH"] = str(build_directory / "python")  # fullbore.data as built; nothing else is there
    return values


def contenders(build: Path, peers: Path) -> list[Contender]:
    python, script = str(peers / "bin" / "python3"), lambda name: str(HERE / "peers" / name)
    files, everything = ("small", "large"), tuple(VARIANTS)
    all_of_them = [
        Contender(CEILING, [str(build / "bench" / "loader_ceiling")], everything),
        Contender(OURS, [str(build / "bench" / "loader_ours")], everything),
    ]
    ours_python = os.environ.get("FULLBORE_DATA_PYTHON", str(ROOT / ".venv" / "bin" / "python3"))
    ours = [ours_python, script("fullbore_data.py")]
    all_of_them += [
        Contender("fullbore.data", ours, everything, imports="fullbore.data"),
        # What the loader takes of a process without torch: the DataLoader cannot be without.
        Contender("fullbore.data, NumPy", [*ours, "--numpy"], everything, imports="fullbore.data, numpy"),
    ]
    for workers in (0, 1, 2):
        title = f"{workers} workers" if workers != 1 else "1 worker"
        all_of_them += [
            Contender(
                f"{DATALOADER}, {title}",
                [DEBIAN_PYTHON, script("dataloader.py"), "--workers", str(workers)],
                (*files, "text"),
                "torch, torchvision, PIL",
                workers,
                reads_files=True,
            ),
            Contender(
                f"DataLoader, newest Pillow, {title}",
                [python, script("dataloader.py"), "--workers", str(workers)],
                files,
                "torch, PIL",
                workers,
            ),
            Contender(
                f"webdataset, newest Pillow, {title}",
                [python, script("wds_loader.py"), "--workers", str(workers)],
                ("tar", "text"),
                "torch, PIL, webdataset",
                workers,
            ),
        ]
        if workers != 1:
            all_of_them.append(
                Contender(
                    f"DataLoader, torchvision.io, {title}",
                    [DEBIAN_PYTHON, script("torchvision_io.py"), "--workers", str(workers)],
                    files,
                    "torch, torchvision.io",
                    workers,
                )
            )
    all_of_them += [
        Contender("SPDL", [python, script("spdl_loader.py")], files, "spdl.io, torch"),
        Contender("DALI", [python, script("dali_loader.py")], (*files, "tar"), "nvidia.dali.fn"),
        Contender("FFCV", [python, script("ffcv_loader.py")], files, "ffcv.loader", check=False),
        Contender("tf.data", [python, script("tfdata.py")], files, "tensorflow"),
    ]
    return all_of_them


def location(contender: Contender, data: Path, variant: str) -> tuple[Path, str]:
    folder, kind = VARIANTS[variant]
    if variant == "text" and contender.reads_files:
        folder, kind = "text", "text"
    return data / folder, kind


def command_line(contender: Contender, data: Path, variant: str, threads: int) -> list[str]:
    path, kind = location(contender, data, variant)
    return [*contender.command, str(path), "--kind", kind, "--threads", str(threads)]


def start(command: list[str], threads: int) -> subprocess.Popen:
    cores = sorted(os.sched_getaffinity(0))[:threads]
    return subprocess.Popen(
        command,
        env=environment(threads),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: os.sched_setaffinity(0, cores),
    )


def finish(process: subprocess.Popen, name: str) -> dict | None:
    try:
        out, errors = process.communicate(timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        print(f"{name}: no result after {TIMEOUT_S} s", file=sys.stderr)
        return None
    lines = [line for line in out.splitlines() if line.startswith("{")]
    if process.returncode != 0 or not lines:
        print(f"{name}: failed: {(errors.strip().splitlines() or ['no output'])[-1][:200]}", file=sys.stderr)
        return None
    return json.loads(lines[-1])


# --- Memory: a run of its own, for reading /proc disturbs what is timed.


def tree(root: int) -> list[int]:
    found, at = [root], 0
    while at < len(found):
        for task in Path(f"/proc/{found[at]}/task").glob("*/children"):
            try:
                found += [int(child) for child in task.read_text().split()]
            except OSError:
                pass
        at += 1
    return found


def field_mb(path: Path, name: str) -> float:
    try:
        for line in path.read_text().splitlines():
            if line.startswith(name):
                return int(line.split()[1]) / 1024
    except OSError:
        pass  # it has ended
    return 0.0


def measure_memory(command: list[str], threads: int, name: str, result: Result) -> None:
    process = start(command, threads)
    pss, peaks = 0.0, {}
    while process.poll() is None:
        processes = tree(process.pid)
        pss = max(pss, sum(field_mb(Path(f"/proc/{pid}/smaps_rollup"), "Pss:") for pid in processes))
        for pid in processes:
            peaks[pid] = max(peaks.get(pid, 0), field_mb(Path(f"/proc/{pid}/status"), "VmHWM:"))
        time.sleep(0.1)
    if finish(process, name) is not None:
        result.peak_pss_mb, result.peak_hwm_mb = pss, sum(peaks.values())


# --- Output: the first 64 images, resized whole.


def differences(chosen: list[Contender], data: Path, variant: str) -> dict[str, tuple[float, float]]:
    """Mean and maximum difference to the DataLoader's pixels, in 1/255."""
    import numpy

    outputs = {}
    for contender in chosen:
        if not contender.check or not contender.fits(1):
            continue
        path = data / "check.f32"
        path.unlink(missing_ok=True)
        process = start([*command_line(contender, data, variant, 1), "--check", str(path)], 1)
        try:
            process.communicate(timeout=TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
        if path.exists() and path.stat().st_size == BATCH * 3 * SIDE * SIDE * 4:
            outputs[contender.name] = numpy.fromfile(path, numpy.float32).reshape(BATCH, 3, SIDE, SIDE)
        path.unlink(missing_ok=True)
    reference = outputs.get(f"{DATALOADER}, 0 workers")
    if reference is None:
        return {}
    scale = 255 * numpy.array(STD, numpy.float32).reshape(1, 3, 1, 1)
    found = {}
    for name, output in outputs.items():
        difference = numpy.abs(output - reference) * scale
        found[name] = (float(difference.mean()), float(difference.max()))
    return found


# --- The table


def ratio(results: dict[str, Result], name: str, other: str) -> float | None:
    pairs = zip(results[name].rates, results[other].rates) if other in results else []
    values = [a / b for a, b in pairs if a and b]
    return statistics.median(values) if values else None


def best_dataloader(results: dict[str, Result], prefix: str) -> str | None:
    known = [name for name, result in results.items() if name.startswith(prefix) and any(result.rates)]
    return max(known, key=lambda name: statistics.median(results[name].rates), default=None)


def show(value: float | None, pattern: str) -> str:
    return "" if value is None else pattern.format(value)


def print_table(variant: str, threads: int, results: dict[str, Result], pixels: dict[str, tuple[float, float]]) -> None:
    plain = best_dataloader(results, DATALOADER) or best_dataloader(results, "webdataset")
    best = best_dataloader(results, "DataLoader") or plain
    print(f"\n{variant}, {threads} thread(s) on as many cores. DataLoader: '{plain}'; the best of them: '{best}'\n")
    columns = (
        "contender",
        "samples/s (extremes)",
        "of the ceiling",
        "x DataLoader",
        "x the best",
        "CPU ms a sample",
        "first batch s",
        "peak MB",
    )
    print("| " + " | ".join((*columns, "off, 1/255")) + " |\n" + "|---" * 9 + "|")
    for name, result in sorted(results.items(), key=lambda item: -statistics.median(item[1].rates or [0])):
        rates = [rate for rate in result.rates if rate]
        if not rates:
            continue
        mean, most = pixels.get(name, (None, None))
        off = "" if mean is None else f"{mean:.2f}, at most {most:.0f}"
        print(
            f"| {name} | {statistics.median(rates):.0f} ({min(rates):.0f} to {max(rates):.0f}) "
            f"| {show(ratio(results, name, CEILING), '{:.2f}')} "
            f"| {show(ratio(results, name, plain) if plain else None, '{:.2f}')} "
            f"| {show(ratio(results, name, best) if best else None, '{:.2f}')} "
            f"| {show(statistics.median(result.cpu_ms), '{:.2f}')} "
            f"| {show(statistics.median(result.first_batch_s), '{:.2f}')} "
            f"| {show(result.peak_pss_mb, '{:.0f}')} | {off} |"
        )


def measure_variant(args: argparse.Namespace, chosen: list[Contender], variant: str, tables: io.StringIO) -> dict:
    here = [one for one in chosen if variant in one.variants]
    runs = [(threads, one) for threads in args.threads for one in here if one.fits(threads)]
    results = {threads: {one.name: Result() for at, one in runs if at == threads} for threads in args.threads}
    for turn in range(args.rounds):
        for number, (threads, one) in enumerate(runs):
            at = f"{variant}, round {turn + 1} of {args.rounds}, {number + 1}/{len(runs)}"
            print(f"{at}: {one.name}, {threads} thread(s)", file=sys.stderr)
            command = [*command_line(one, args.data, variant, threads), "--seconds", str(args.seconds)]
            line = finish(start(command, threads), one.name) or {}
            result = results[threads][one.name]
            result.rates.append(line.get("samples_per_s", 0.0))
            if line:
                result.cpu_ms.append(line["cpu_ms_per_sample"])
                result.first_batch_s.append(line["first_batch_s"])
                result.constructed_s.append(line["constructed_to_first_batch_s"])
    for threads, one in runs if args.memory else []:
        command = [*command_line(one, args.data, variant, threads), "--seconds", "2"]
        measure_memory(command, threads, one.name, results[threads][one.name])
    pixels = differences(here, args.data, variant) if variant == "small" else {}
    for threads in args.threads:
        with contextlib.redirect_stdout(io.StringIO()) as table:
            print_table(variant, threads, results[threads], pixels)
        tables.write(table.getvalue())
        print(table.getvalue(), end="", flush=True)
    return {
        "variant": variant,
        "threads": {threads: {name: vars(result) for name, result in of.items()} for threads, of in results.items()},
        "pixels": pixels,
    }


def put_into(path: Path, tables: str) -> None:
    """Between the marks of docs/measurements.md: date, machine, command, tables."""
    text = path.read_text()
    before, mark, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not mark or not end:
        raise SystemExit(f"'{path}' lacks the marks '{BEGIN}' and '{END}'")
    cpu = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "")
    cores, load = len(os.sched_getaffinity(0)), os.getloadavg()[0]
    arguments = " ".join(argument for argument in sys.argv[1:] if not argument.startswith("/"))
    machine = f"{time.strftime('%Y-%m-%d')}, {cpu}, {cores} cores, load {load:.1f} at the end."
    head = f"{machine} `bench/loader/run.py {arguments}`"
    path.write_text(f"{before}{BEGIN}\n{head}\n{tables}\n{END}{after}")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, nargs="?", default=ROOT / "build" / "loader-data")
    parser.add_argument("--variants", type=lambda text: text.split(","), default=list(VARIANTS))
    parser.add_argument("--threads", type=lambda text: [int(item) for item in text.split(",")], default=[1, 2])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--only", type=lambda text: text.split(","), help="those whose name begins with one of these")
    parser.add_argument("--build", type=Path, default=build_directory)
    parser.add_argument("--peers", type=Path, default=peers_directory)
    parser.add_argument("--json", type=Path, help="also write everything that was measured to this file")
    parser.add_argument("--into", type=Path, help="also put the tables between the marks in this file of docs/")
    parser.add_argument("--short", action="store_true")
    args = parser.parse_args()
    args.memory = not args.short
    if args.short:
        args.rounds, args.seconds, args.variants = 1, 1.0, ["small"]
    return args


def main() -> None:
    global build_directory, peers_directory
    args = parse()
    build_directory, peers_directory = args.build.resolve(), args.peers.resolve()
    subprocess.run([DEBIAN_PYTHON, str(HERE / "make_data.py"), str(args.data)], check=True, stdout=sys.stderr)
    chosen = []
    for one in contenders(args.build, peers_directory):
        if args.only and not any(one.name.startswith(prefix) for prefix in args.only):
            continue
        missing = one.missing()
        if missing:
            print(f"left out: {one.name}: {missing}", file=sys.stderr)
        else:
            chosen.append(one)
    tables = io.StringIO()
    measured = [measure_variant(args, chosen, variant, tables) for variant in args.variants]
    if args.into:
        put_into(args.into, tables.getvalue())
    if args.json:
        args.json.write_text(json.dumps(measured, indent=1))


if __name__ == "__main__":
    main()
