"""Runs a program on simulated machines and says how long its steps take.

A step is complete when its host part has ended and everything that it launched has run on every device of it; step
times are the distances between completions, so a host that runs ahead of its device gains nothing by that.
"""

from __future__ import annotations

from dataclasses import dataclass

from .engine import Engine
from .host import Host
from .noise import Noise
from .program import Program
from .training import Training


@dataclass
class Run:
    program: Program
    hosts: list[Host]
    completions: list[int]  # the moment before the first recorded step, and the end of each of them

    @property
    def step_ns(self) -> float:
        return (self.completions[-1] - self.completions[0]) / (len(self.completions) - 1)

    @property
    def step_times(self) -> list[int]:
        return [later - earlier for earlier, later in zip(self.completions, self.completions[1:])]


def simulate(
    program: Program, seed: object, steps: int | None = None, noise: bool = True, recorded: bool = True
) -> Run:
    steps = program.steps if steps is None else steps
    engine, meetings = Engine(), {}
    hosts = []
    for rank in range(program.ranks):
        its_noise = Noise(f"{seed} rank {rank}", noise)
        host = Host(engine, program.device, its_noise, rank, meetings, program.ranks, recorded)
        engine.start(Training(program, host).run(steps))
        hosts.append(host)
    engine.run()
    return Run(program, hosts, _completions(hosts, program, steps))


def _completions(hosts: list[Host], program: Program, steps: int) -> list[int]:
    last = [0] * (program.warmup + steps)
    for host in hosts:
        for step, end in enumerate(host.step_ends):
            last[step] = max(last[step], end)
        for work in host.gpu.history:
            if work.step >= 0:
                last[work.step] = max(last[work.step], work.end)
    begun = max(host.step_begins[program.warmup] for host in hosts)
    before = max(last[: program.warmup], default=0)
    return _rising([before if program.warmup and not program.cold else begun, *last[program.warmup :]])


def _rising(moments: list[int]) -> list[int]:
    """A step cannot be complete before the one that precedes it."""
    grown = []
    for moment in moments:
        grown.append(max(moment, grown[-1]) if grown else moment)
    return grown
