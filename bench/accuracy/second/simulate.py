"""Runs a program: all ranks on one clock, with or without the profiler."""

from dataclasses import dataclass, replace

from second.collective import World
from second.devices import Hardware
from second.engine import Engine
from second.exchange import Exchanger
from second.families import build
from second.gpu import Gpu
from second.host import Host
from second.loader import Batches
from second.noise import Noise
from second.ops import Model
from second.program import Lag, Program
from second.recording import Profile, Recorder
from second.training import Training


@dataclass
class Run:
    """What came out."""

    completed: list  # of each step: when the last device work of any rank ended, ns
    recorders: list
    trainings: list

    def step_ns(self, first: int, last: int) -> float:
        """Mean distance between completions of steps first .. last - 1."""
        return (self.completed[last - 1] - self.completed[first - 1]) / (last - first)

    def steps_ns(self, first: int, last: int) -> list:
        """Distances between completions."""
        return [round(self.completed[step] - self.completed[step - 1]) for step in range(first, last)]


def simulate(program: Program, hardware: Hardware, key: str, steps: int, profile: Profile = None, model=None) -> Run:
    """A run of some steps from the start."""
    engine, noise = Engine(), Noise(f"{key}:world")
    model = model or model_of(program, hardware)
    world = World(engine, noise, program.ranks, program.exchange)
    trainings = [
        one_rank(engine, world, program, hardware, model, rank, key, steps, profile) for rank in range(program.ranks)
    ]
    for training in trainings:
        engine.spawn(training.run())
    engine.run()
    gpus = [training.host.gpu for training in trainings]
    completed = [max(gpu.done.get(step, 0.0) for gpu in gpus) for step in range(steps)]
    return Run(completed, [training.host.recorder for training in trainings], trainings)


def model_of(program: Program, hardware: Hardware) -> Model:
    """The program's model."""
    return build(program.family, program.shape, program.batch, hardware, program.numerics)


def one_rank(engine, world, program: Program, hardware, model, rank: int, key: str, steps: int, profile) -> Training:
    """Host, device and loader of one rank."""
    noise = Noise(f"{key}:rank{rank}")
    lag = program.lag if program.lag.rank in (rank, -1) else Lag()
    gpu = Gpu(engine, hardware, noise, lag.factor if lag.kind == "device" else 1.0, profile is not None)
    cpu = program.cpu * (lag.factor if lag.kind == "host" else 1.0)
    host = Host(engine, gpu, noise, cpu, Recorder(profile) if profile else None)
    batches = Batches(program.loader, program.feed, noise, lag.factor if lag.kind == "loader" else 1.0)
    exchanger = Exchanger(host, world, program, model.params, rank) if program.ranks > 1 else None
    return Training(host, replace(program, lag=lag), model, batches, exchanger, steps)
