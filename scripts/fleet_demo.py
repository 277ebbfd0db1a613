#!/usr/bin/env python3
"""A fleet on one machine: a real Slurm cluster whose plugin records every job, a dozen trainings by several users, each
with something planted in it, and the report of all of them.

    sudo scripts/fleet_demo.py [--keep]        (make fleet-demo)

Starts slurmctld, slurmd and munged, PostgreSQL, and Prometheus, which scrapes `fullbore serve`: Debian's packages, on
loopback, in a directory of their own. Submits the scripts of tests/planted, which measure by their own clocks what was
planted, as users that every Debian has; not one has a word of fullbore in it. Waits, collects, and prints the report,
and what the scripts measured beside it. Then makes the three edits that bring most back, as arguments of those scripts,
runs the jobs changed and unchanged by turns, one at a time, and prints how much faster they are, beside the prediction.

Whatever is started carries FULLBORE_FLEET_DEMO in its environment. At the end, and by the next run after a kill -9, all
processes that do are ended, and the directory is removed (--keep leaves the runs).
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import fleet_cures
import postgresql
from ports import free_ports
from slurm_cluster import cluster, missing

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "build" / "release"
FULLBORE = BUILD / "fullbore"
PLUGIN = BUILD / "libfullbore_slurm.so"
PYTHON = "/usr/bin/python3"  # which other users may execute, with python3-torch
MARK = "FULLBORE_FLEET_DEMO"
FOLDER = Path("/tmp/fullbore-fleet-demo")
MOST_S = 1800
STEADY = ("work", "waste", "checkpoint", "validation")  # what a steady state here is made of
PARTS = "SELECT run.job, kind, cause, device_ns FROM fullbore.run JOIN fullbore.part ON part.run = run.key"
FIRST_ADVICE = "SELECT run.id, low, expected, high FROM fullbore.run JOIN fullbore.advice ON advice.run = run.key"
FIRST_ADVICE += " WHERE place = 0"
EDITS, ROUNDS = 3, 3


@dataclass
class Planted:
    user: str
    case: str
    truth: str  # what the script calls the time of what was planted
    cause: str  # the finding, or the part of the report, that has to name it
    steps: int = 120
    job: str = ""
    argument: str = ""  # that undoes what is planted

    @property
    def path(self) -> Path:
        return FOLDER / "work" / self.user / f"{self.job}.json"

    @property
    def run(self) -> Path:
        return FOLDER / "runs" / self.user / f"slurm-{self.job}.batch.fbr"


@dataclass
class Cure:
    """An edit of the report, and the job on which it is tried."""

    planted: Planted
    argument: str
    predicted: dict[str, float]  # times as fast
    before: list[Planted] = field(default_factory=list)
    after: list[Planted] = field(default_factory=list)


JOBS = [
    Planted("games", "no_workers", "wait", "input-bound"),
    Planted("games", "logging_each_step", "logging", "host-other"),
    Planted("games", "healthy", "wait", ""),
    Planted("news", "slow_sample", "wait", "input-bound", steps=300),
    Planted("news", "validation", "validation", "validation"),
    Planted("news", "healthy", "wait", ""),
    Planted("mail", "validation", "validation", "validation"),
    Planted("mail", "no_workers", "wait", "input-bound"),
    Planted("mail", "own_generator", "wait", "input-bound"),
    Planted("list", "healthy", "wait", ""),
    Planted("list", "storage", "wait", "input-bound"),
    Planted("list", "own_generator", "wait", "input-bound"),
]
USERS = sorted({job.user for job in JOBS})


def say(text: str) -> None:
    print(f"fleet demo: {text}", file=sys.stderr, flush=True)


def is_ours(process: Path) -> bool:
    """By its environment; slurmstepd writes its title over that, and has files of the cluster open."""
    if f"{MARK}={FOLDER}".encode() in (process / "environ").read_bytes().split(b"\0"):
        return True
    if (process / "comm").read_text() != "slurmstepd\n":
        return False
    return any(os.readlink(file).startswith(f"{FOLDER}/") for file in (process / "fd").iterdir())


def marked() -> list[int]:
    """Processes that a demo has started, this one or one that was killed."""
    found = []
    for process in Path("/proc").glob("[1-9]*"):
        with contextlib.suppress(OSError):
            if process.name != str(os.getpid()) and is_ours(process):
                found.append(int(process.name))
    return found


def end_all() -> None:
    """They are asked first: PostgreSQL gives its shared memory back only if it may."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        until = time.monotonic() + 20
        while (found := marked()) and time.monotonic() < until:
            for pid in found:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)
            time.sleep(0.5)


def why_not() -> str:
    if missing():
        return missing()
    if not PLUGIN.exists() or not FULLBORE.exists():
        return f"no {PLUGIN}: make build, with libslurm-dev"
    if shutil.which("prometheus") is None or not postgresql.BINARIES:
        return "prometheus or postgresql is not installed (Debian's packages of these names)"
    can = ["runuser", "-u", USERS[0], "--", PYTHON, "-c", "import torch, PIL"]
    if subprocess.run(can, cwd="/", capture_output=True).returncode != 0:
        return f"{PYTHON} has no torch or Pillow for other users (Debian: python3-torch, python3-pil)"
    return ""


def environment() -> dict[str, str]:
    ours = {name: value for name, value in os.environ.items() if not name.startswith(("FULLBORE_", "SLURM_"))}
    return {**ours, MARK: str(FOLDER)}


@contextlib.contextmanager
def daemon(name: str, *words: object) -> Iterator[subprocess.Popen]:
    with (FOLDER / f"{name}.log").open("w") as log:
        how = {"stdout": log, "stderr": log, "stdin": subprocess.DEVNULL, "start_new_session": True}
        process = subprocess.Popen([str(word) for word in words], env=environment(), cwd=FOLDER, **how)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(timeout=60)


def wait_for(what: str, holds, process: subprocess.Popen) -> None:
    until = time.monotonic() + 60
    while not holds():
        if process.poll() is not None or time.monotonic() > until:
            raise SystemExit(f"fleet demo: no {what}: see {FOLDER}/{what}.log")
        time.sleep(0.2)


@contextlib.contextmanager
def prometheus() -> Iterator[str]:
    """Scrapes what is recorded, of all users."""
    serve, port = free_ports(2)
    config, data = FOLDER / "prometheus.yml", FOLDER / "prometheus"
    scrape = {"job_name": "fullbore", "static_configs": [{"targets": [f"127.0.0.1:{serve}"]}]}
    config.write_text(json.dumps({"global": {"scrape_interval": "2s"}, "scrape_configs": [scrape]}))
    directories = [word for user in USERS for word in ("--dir", FOLDER / "runs" / user)]
    flags = [f"--config.file={config}", f"--storage.tsdb.path={data}", f"--web.listen-address=127.0.0.1:{port}"]
    with daemon("serve", FULLBORE, "serve", "--listen", f"127.0.0.1:{serve}", *directories) as scraped:
        wait_for("serve", lambda: answers(f"http://127.0.0.1:{serve}/healthz"), scraped)
        with daemon("prometheus", "prometheus", *flags) as scrapes:
            wait_for("prometheus", lambda: answers(f"http://127.0.0.1:{port}/-/ready"), scrapes)
            yield f"http://127.0.0.1:{port}"


def answers(url: str) -> bool:
    with contextlib.suppress(OSError):
        return urllib.request.urlopen(url, timeout=5).status == 200
    return False


def asked(address: str, query: str) -> list[dict]:
    words = urllib.parse.urlencode({"query": query})
    with urllib.request.urlopen(f"{address}/api/v1/query?{words}", timeout=30) as said:
        return json.load(said)["data"]["result"]


def make_places() -> None:
    FOLDER.mkdir(mode=0o755)
    for name in ("cluster", "runs", "work", "photos"):
        (FOLDER / name).mkdir(mode=0o755)
    for user in USERS:
        for name, mode in (("runs", 0o700), ("work", 0o755)):
            (FOLDER / name / user).mkdir(mode=mode)
            shutil.chown(FOLDER / name / user, user)
    make = [PYTHON, ROOT / "examples" / "make_photos.py", FOLDER / "photos", "--count", "48"]
    subprocess.run(make, check=True, stdout=subprocess.DEVNULL)


def submit(planted: Planted, name: str, slurm: dict[str, str]) -> None:
    """Each takes the whole node, and they run in this order: what a neighbour takes is no fault of a script."""
    place = FOLDER / "work" / planted.user
    words = f"--truth {place}/$SLURM_JOB_ID.json --photos {FOLDER}/photos --scratch {place} --steps {planted.steps}"
    train = f"{PYTHON} {fleet_cures.CASES}/{planted.case}.py {words} {planted.argument}"
    script = f"#!/bin/sh\nexport OMP_NUM_THREADS=1\nexec {train}\n"
    command = ["runuser", "-u", planted.user, "--", "sbatch", "--parsable", "--exclusive"]
    command.append(f"--job-name={planted.case}-{name}")
    done = subprocess.run(command, env=slurm, cwd=place, input=script, text=True, check=True, stdout=subprocess.PIPE)
    planted.job = done.stdout.strip()


def wait_for_jobs(slurm: dict[str, str]) -> None:
    until, left = time.monotonic() + MOST_S, None
    while left != 0 and time.monotonic() < until:
        queue = subprocess.run(["squeue", "--noheader", "--format=%i"], env=slurm, capture_output=True, text=True)
        if left != len(queue.stdout.split()):
            left = len(queue.stdout.split())
            say(f"{left} jobs are left")
        time.sleep(1)
    while time.monotonic() < until and recorders():
        time.sleep(0.2)


def recorders() -> list[int]:
    found = []
    for pid in marked():
        with contextlib.suppress(OSError):
            if b"--started-by" in Path(f"/proc/{pid}/cmdline").read_bytes():
                found.append(pid)
    return found


def measured(planted: Planted, warmup: int) -> float:
    """What the script's own clock says of what was planted, of its steps after the warm-up."""
    steps = json.loads(planted.path.read_text())["steps"][warmup:]
    return sum(step.get(planted.truth, 0.0) for step in steps) / sum(step["wall"] for step in steps)


def warmup_of(planted: Planted) -> int:
    explain = [FULLBORE, "explain", planted.run, "--json", "-"]
    report = subprocess.run(explain, check=True, capture_output=True, text=True)
    return json.loads(report.stdout)["window"]["warmup_steps"]


def shares(database: postgresql.Server) -> dict[str, dict[str, float]]:
    """Of each job's steady state what was no work: waste by cause, and the other parts."""
    steady: dict[str, float] = {}
    other: dict[str, dict[str, float]] = {}
    for job, kind, cause, device_ns in database.sql(PARTS):
        if kind in STEADY:
            steady[job] = steady.get(job, 0.0) + int(device_ns)
        if kind in STEADY and kind != "work":
            other.setdefault(job, {})[cause or kind] = int(device_ns)
    return {job: {cause: ns / steady[job] for cause, ns in other.get(job, {}).items()} for job in steady}


def compare(database: postgresql.Server) -> int:
    """Prints what the scripts measured beside what the fleet says; returns how many differ by more than five points."""
    found, wrong = shares(database), 0
    print("\njob   user    what is planted   cause         by its own clock   in the report")
    for planted in JOBS:
        truth = measured(planted, warmup_of(planted)) if planted.cause else 0.0
        said = found.get(planted.job, {})
        reported = said.get(planted.cause, 0.0) if planted.cause else sum(said.values())
        differs = abs(truth - reported) > 0.05
        wrong += differs
        row = f"{planted.job:<5} {planted.user:<7} {planted.case:<17} {planted.cause or '(nothing)':<13} "
        print(f"{row} {truth:>14.1%} {reported:>15.1%}{'   differs' if differs else ''}")
    return wrong


def account_of(store: str | Path) -> dict:
    said = subprocess.check_output([FULLBORE, "fleet", "report", "--from", store, "--json", "-"], text=True)
    return json.loads(said)


def sums_up(account: dict) -> bool:
    return account["given_ns"] == sum(part["device_ns"] for part in account["parts"])


def report(store: str, address: str) -> int:
    subprocess.run([FULLBORE, "fleet", "collect", FOLDER / "runs", "--to", store, "-q"], check=True)
    for flags in (["--by", "user"], ["--for", USERS[0]]):
        print()
        sys.stdout.flush()
        subprocess.run([FULLBORE, "fleet", "report", "--from", store, *flags], check=True)
    exact = sums_up(account_of(store))
    seen = asked(address, "count(count by (run) (count_over_time(fullbore_steps_total[1h])))")
    print(f"\nthe parts sum to what was given, to the nanosecond: {'yes' if exact else 'NO'}")
    print(f"runs that Prometheus saw while they were recorded: {seen[0]['value'][1] if seen else 0}")
    return 0 if exact else 1


def cures_of(database: postgresql.Server) -> list[Cure]:
    """The edits that bring most back, of those that the planted scripts take as an argument."""
    jobs = {planted.run.stem: planted for planted in JOBS}
    predicted = {run: [float(times) for times in gain] for run, *gain in database.sql(FIRST_ADVICE)}
    cures = []
    for edit in account_of(database.url())["fixes"]:
        planted = jobs[edit["run"]]
        if argument := fleet_cures.argument(planted.case, edit):
            gain = dict(zip(("low", "expected", "high"), predicted[edit["run"]], strict=True))
            cures.append(Cure(planted, argument, gain))
    return cures[:EDITS]


def try_by_turns(cure: Cure, slurm: dict[str, str]) -> None:
    for _ in range(ROUNDS):
        for jobs, name, argument in ((cure.before, "as-it-was", ""), (cure.after, "changed", cure.argument)):
            jobs.append(replace(cure.planted, argument=argument))
            submit(jobs[-1], name, slurm)


def steps_s(jobs: list[Planted]) -> list[float]:
    return [fleet_cures.step_s(job.path, warmup_of(job)) for job in jobs]


def print_cures(cures: list[Cure]) -> None:
    print(f"\n{fleet_cures.HEADING}")
    for cure in cures:
        edit = f"{cure.planted.user}: {cure.planted.case} {cure.argument}"
        print(fleet_cures.row(edit, steps_s(cure.before), steps_s(cure.after), cure.predicted))
    print(f"measured by the scripts' own clocks: the median of {ROUNDS} pairs of jobs (the lowest to the highest)")


def print_sums(name: str, jobs: list[Planted]) -> bool:
    """A row of what the report says of these jobs; whether its parts sum to the whole."""
    store = FOLDER / f"{name}.db"
    subprocess.run([FULLBORE, "fleet", "collect", *(job.run for job in jobs), "--to", store, "-q"], check=True)
    account = account_of(store)
    parts = {kind: sum(part["device_ns"] for part in account["parts"] if part["kind"] == kind) for kind in STEADY}
    given = account["given_ns"]
    cells = [given, parts["work"], parts["waste"], parts["validation"], given - sum(parts.values())]
    print(f"{name:<20}" + "".join(f"{ns / 1e9:>12.1f}" for ns in cells))
    return sums_up(account) and account["runs"] == len(jobs)


def bring_back(database: postgresql.Server, slurm: dict[str, str]) -> int:
    """Makes the edits, and prints what they brought; returns how many of them were not tried, or not accounted for."""
    cures = cures_of(database)
    for cure in cures:
        try_by_turns(cure, slurm)
    say(f"{len(cures)} edits are made, and tried in {2 * ROUNDS} jobs each, one at a time")
    wait_for_jobs(slurm)
    print_cures(cures)
    print("\nin device seconds          given        work      wasted  validation    the rest")
    before, after = ([job for cure in cures for job in getattr(cure, when)] for when in ("before", "after"))
    exact = [print_sums("as they were", before), print_sums("changed", after)]
    return EDITS - len(cures) + exact.count(False)


def demo() -> int:
    make_places()
    plugstack = f"required {PLUGIN} default=on dir={FOLDER}/runs binary={FULLBORE} wait_ms=2000\n"
    os.environ[MARK] = str(FOLDER)  # for what the cluster and the database start
    tempfile.tempdir = str(FOLDER)
    with contextlib.ExitStack() as servers:
        database = servers.enter_context(postgresql.server())
        address = servers.enter_context(prometheus())
        slurm = servers.enter_context(cluster(FOLDER / "cluster", plugstack=plugstack))
        for number, planted in enumerate(JOBS, 1):
            submit(planted, str(number), slurm)
        say(f"{len(JOBS)} jobs of {len(USERS)} users are submitted")
        wait_for_jobs(slurm)
        wrong = report(database.url(), address) + compare(database)
        return wrong + bring_back(database, slurm)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keep", action="store_true", help="leave the runs where they are")
    keep = parser.parse_args().keep
    if why_not():
        sys.exit(f"fleet demo: {why_not()}")
    end_all()
    shutil.rmtree(FOLDER, ignore_errors=True)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    try:
        return 1 if demo() else 0
    finally:
        os.environ.pop(MARK, None)
        end_all()
        if not keep:
            shutil.rmtree(FOLDER, ignore_errors=True)
        else:
            say(f"the runs are in {FOLDER}/runs")


if __name__ == "__main__":
    sys.exit(main())
