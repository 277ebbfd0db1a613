#!/usr/bin/env python3
"""Which figure of a slice tells best how fast a program is, and how long slices should be: of two that are the same.

Two copies of one program take turns (SIGSTOP), in slices of several lengths, one length after the other. What a slice
tells is the mean of its steps, their median, or their lower quartile, of the time that they took or of the time that
they had a core for. Of each: the standard error of the ratio of the two after so many seconds, in the median over all
rounds, and by how much the ratio is off from 1.

    bench/slices.py [--load N] [--rounds N] [--seconds N] [--kinds matrices,python] [--lengths 0.05,0.1,0.2]
"""

from __future__ import annotations

import argparse
import bisect
import itertools
import math
import os
import pathlib
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time

from proof import KINDS, PROGRAM, PYTHON, UNITS, neighbours

WARM_S = 6  # until it has begun
TRIMMED = 0.25  # of each side, of the slices
NOTES = """
import os as _os, signal as _signal, time as _time
_schedstat = _os.open("/proc/thread-self/schedstat", _os.O_RDONLY)
_notes = []
def note():
    _notes.append((_time.monotonic(), int(_os.pread(_schedstat, 64, 0).split()[1]) / 1e9))
def write(*_):
    open(_os.environ["STEPS"], "w").write("".join(f"{end} {without}\\n" for end, without in _notes))
    _os._exit(0)
_signal.signal(_signal.SIGTERM, write)
"""
STATISTICS = {
    "mean": statistics.mean,
    "median": statistics.median,
    "lower quartile": lambda values: statistics.quantiles(values, n=4)[0],
}
Step = tuple[float, float]  # seconds, of which the thread had no core


def signal_all(process: subprocess.Popen, number: int) -> None:
    os.killpg(process.pid, number)


def take_turns(programs: list[subprocess.Popen], length: float, seconds: float, chance: random.Random) -> list:
    """When each had its turns."""
    turns: list[list[tuple[float, float]]] = [[], []]
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for index in chance.sample((0, 1), 2):
            begin = time.monotonic()
            signal_all(programs[index], signal.SIGCONT)
            time.sleep(length)
            signal_all(programs[index], signal.SIGSTOP)
            turns[index].append((begin, time.monotonic()))
    return turns


def steps_in(turns: list[tuple[float, float]], notes: list[Step]) -> list[list[Step]]:
    """The steps that ended in each turn, but the one during which the program stood."""
    ends = [end for end, _ in notes]
    slices = []
    for begin, end in turns:
        first, last = bisect.bisect_left(ends, begin), bisect.bisect_right(ends, end)
        pairs = itertools.pairwise(notes[first:last])
        slices.append([(after[0] - before[0], after[1] - before[1]) for before, after in pairs])
    return slices


def trimmed(values: list[float]) -> tuple[float, float]:
    """Mean and standard error (Tukey and McLaughlin 1963)."""
    ordered = sorted(values)
    out = int(TRIMMED * len(ordered))
    kept = ordered[out : len(ordered) - out]
    drawn_in = [kept[0]] * out + kept + [kept[-1]] * out
    error = statistics.stdev(drawn_in) / math.sqrt(len(ordered)) * len(ordered) / len(kept)
    return statistics.mean(kept), error


def ratios(slices: list[list[list[Step]]], statistic: str, on_core: bool) -> list[float]:
    def of(steps: list[Step]) -> float:
        return STATISTICS[statistic]([wall - (without if on_core else 0) for wall, without in steps])

    both = [pair for pair in zip(*slices) if min(map(len, pair)) >= 3]
    return [math.log(of(first) / of(second)) for first, second in both]


def one_round(kind: str, options: argparse.Namespace, directory: str, chance: random.Random) -> dict:
    """The slices of both, by length."""
    script = f"{kind}.py"
    files = [os.path.join(directory, f"steps{index}") for index in (0, 1)]
    programs = [
        subprocess.Popen(
            [PYTHON, script, kind, str(UNITS)],
            cwd=directory,
            env={**os.environ, "STEPS": file},
            start_new_session=True,
        )
        for file in files
    ]
    try:
        time.sleep(WARM_S)
        for program in programs:
            signal_all(program, signal.SIGSTOP)
        turns = {length: take_turns(programs, length, options.seconds, chance) for length in options.lengths}
        for program in programs:
            signal_all(program, signal.SIGTERM)
            signal_all(program, signal.SIGCONT)
            program.wait(30)
    finally:
        for program in programs:
            if program.poll() is None:
                signal_all(program, signal.SIGKILL)
    notes = [[tuple(map(float, line.split())) for line in open(file)] for file in files]
    return {length: [steps_in(turns[length][index], notes[index]) for index in (0, 1)] for length in options.lengths}


def numbers(text: str) -> list[float]:
    return [float(each) for each in text.split(",")]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--load", type=int, default=0, help="programs beside it, that come and go")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=5, help="of each length")
    parser.add_argument("--kinds", type=lambda text: text.split(","), default=["matrices", "python", "copies"])
    parser.add_argument("--lengths", type=numbers, default=[0.05, 0.1, 0.2], help="of slices, in seconds")
    options = parser.parse_args()
    if unknown := [kind for kind in options.kinds if kind not in KINDS]:
        parser.error(f"there is no kind '{unknown[0]}': {', '.join(KINDS)}")
    chance = random.Random(1)
    rounds = []
    with tempfile.TemporaryDirectory() as directory, neighbours(options.load, seed=1):
        for kind in options.kinds:
            noting = PROGRAM.replace("{work}", KINDS[kind]).replace("optimizer.step()\n", "optimizer.step(); note()\n")
            (pathlib.Path(directory) / f"{kind}.py").write_text(NOTES + noting)
        for number, kind in itertools.product(range(options.rounds), options.kinds):
            rounds.append(one_round(kind, options, directory, chance))
            print(f"{kind}, round {number + 1} of {options.rounds}", file=sys.stderr)
    print(f"beside {options.load} programs; after {options.seconds:g} s, medians of {len(rounds)}: error, off")
    print(f"{'':26}" + "".join(f"{f'{length:g} s':>18}" for length in options.lengths))
    for on_core, statistic in itertools.product((False, True), STATISTICS):
        row = f"{statistic}{' on a core' if on_core else ''}"
        print(f"{row:26}", end="")
        for length in options.lengths:
            of_all = [ratios(each[length], statistic, on_core) for each in rounds]
            told = [trimmed(each) for each in of_all if len(each) >= 4]
            error = statistics.median(error for _, error in told) if told else math.nan
            off = statistics.median(abs(mean) for mean, _ in told) if told else math.nan
            print(f"{error:9.1%}{off:9.1%}", end="")
        print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
