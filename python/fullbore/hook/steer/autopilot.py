"""`fullbore run --autopilot`: the number of loader workers is tried while the script trains, and kept where it helps.

All of it happens in the training process: only here are the boundary (a new epoch of the training loader), the waits
and the steps known at the same moment, and it needs no way back from the recorder, which shows and stores the lines.

At the end of an epoch in which the steps waited for their batches, and where samples are the same in any number of
workers (randomness.py), the next epoch gets another number of them. A loader without workers gets some only where all
code that makes its samples is a library's: what the script's own does beside, it does in the training process. Its
steps are compared with those before: kept only where it is faster outside the noise and by MIN_GAIN, and where the gain
is small, only after an epoch with the old number was slower again; else taken back. The script sees its own number
everywhere.

Where garbage collections cost steps, freezing.py tries gc.freeze(), between two changes of the workers. Workers that
would take cores from the training's threads get less priority. Nothing else is changed: threads change how sums are
rounded, persistent workers which random numbers the training draws, and fullbore.data the order of the samples.
"""

from __future__ import annotations

import functools
import os
import sys
from typing import Any

from ..core import channel, steps
from ..core.frames import is_user_file
from ..core.interrupts import is_the_scripts
from ..core.runtime import clock, guarded, hook
from ..torch.loader import known, start_method
from . import freezing, randomness, rescue
from .period import MIN_GAIN, MIN_SHARE, MOST_STEPS, SURE_GAIN, Period, ms, noise_of, say

VARIABLE = "FULLBORE_AUTOPILOT"

MAX_CHANGES = 4
WORKER_BYTES = 300 << 20  # what a worker may take of memory by itself
SHARED_MEMORY_SHARE = 0.5  # of what is free
PREFETCH = 2  # torch's default
NICENESS = 10  # of workers that want the cores of a training's threads: a tenth of their weight (sched(7))
ENOUGH_STEPS = 160  # a gain that is still within the noise is none
LOOKS = 32  # batches of an epoch whose random numbers are looked at


class Pilot:
    """The autopilot of one training process."""

    def __init__(self) -> None:
        self.period: Period | None = None  # that is being measured
        self.before: Period | None = None  # that a change is judged by
        self.tried: Period | None = None  # a small gain, to be made sure of
        self.workers: int | None = None  # None: the script's own
        self.own = 0
        self.changes = 0
        self.done = False
        self.draws = ""  # why the number of workers must stay, as far as seen in the training process
        self.looks = 0
        self.batch_bytes = 0
        self.lost = ""


pilot = Pilot()
hook.forget_in_child.append(lambda: pilot.__init__())  # type: ignore[misc]


def attach(module: Any) -> None:
    """Patches torch.utils.data.dataloader."""
    rescue.attach(module)
    watch_sampler(module._BaseDataLoaderIter)
    watch_waits(module._SingleProcessDataLoaderIter)
    watch_waits(module._MultiProcessingDataLoaderIter)
    watch_fetches(sys.modules["torch.utils.data._utils.fetch"]._MapDatasetFetcher)
    DataLoader = module.DataLoader
    original = DataLoader.__iter__

    @functools.wraps(original)
    def __iter__(self: Any) -> Any:
        workers, is_watched = at_boundary(self)
        iterator = original(self) if workers is None else with_workers(module, original, self, workers)
        if is_watched and hasattr(iterator, "__dict__"):
            iterator.__dict__["_fullbore_drawn"] = drawn_state()
        return iterator

    DataLoader.__iter__ = __iter__
    steps.after_step.append(after_step)
    freezing.attach(is_trying, start_period_anew)


def after_step(optimizer: Any, thread: Any, end: int) -> None:
    if pilot.period is not None and not pilot.done:
        pilot.period.step()


def is_trying() -> bool:
    return pilot.before is not None or pilot.tried is not None


def start_period_anew() -> None:
    """From now on, steps cost a different time."""
    if pilot.period is not None and not is_trying():
        pilot.period = Period(pilot.period.workers)
        pilot.period.begin_epoch()


def never_ending(question: Any) -> Any:
    """For calls into the script's objects in the middle of its loop: an error ends the autopilot, not the loop, and the
    result is None."""

    @functools.wraps(question)
    def asked(*args: Any) -> Any:
        try:
            return question(*args)
        except Exception as error:
            if is_the_scripts(error):
                raise
            leave_alone(error)
            return None

    return asked


@guarded
def leave_alone(error: Exception) -> None:
    pilot.workers = None
    if not pilot.done:
        finish(f"the loader stays as it is: {type(error).__name__}: {error}")


drawn_state = never_ending(randomness.state)


def watch_sampler(Iterator: Any) -> None:
    """Workers make the sampler run ahead: it must not draw from generators that the training uses in the meantime."""
    next_index = Iterator._next_index

    def _next_index(self: Any) -> Any:
        drawn = self.__dict__.get("_fullbore_drawn")
        if drawn is None or pilot.done or pilot.looks >= LOOKS:
            return next_index(self)
        if self._num_yielded:
            before = drawn_state()
            index = next_index(self)
            if drawn_state() != before:
                pilot.draws = "its sampler draws random numbers as it goes"
            return index
        if drawn_state() != drawn:
            pilot.draws = "random numbers are drawn between making its iterator and taking the first batch"
        return next_index(self)

    Iterator._next_index = _next_index


def watch_waits(Iterator: Any) -> None:
    next_data = Iterator._next_data

    def _next_data(self: Any) -> Any:
        period = pilot.period
        if period is None or pilot.done or "_fullbore_drawn" not in self.__dict__:
            return next_data(self)
        begin = clock()
        batch = next_data(self)
        if len(period.times) < MOST_STEPS:
            period.waited_ns += clock() - begin
        if not pilot.batch_bytes:
            pilot.batch_bytes = size_of(batch) or 0
        return batch

    Iterator._next_data = _next_data


def watch_fetches(Fetcher: Any) -> None:
    """Whether making a batch draws random numbers: inline, and in workers."""
    fetch = Fetcher.fetch

    def watched(self: Any, asked: Any) -> Any:
        in_worker = of_worker() is not None
        if pilot.looks >= LOOKS or (not in_worker and (pilot.period is None or pilot.done or pilot.period.workers)):
            return fetch(self, asked)
        pilot.looks += 1
        dataset = self.__dict__.get("_fullbore_inner", self.dataset)  # ours may stand in its place
        before = drawn_state(dataset)
        batch = fetch(self, asked)
        if drawn_state(dataset) != before:
            if in_worker:
                randomness.note_in_worker()
            else:
                pilot.draws = randomness.DRAWS
        return batch

    Fetcher.fetch = watched


@never_ending
def of_worker() -> Any:
    return sys.modules["torch.utils.data._utils.worker"]._worker_info


@never_ending
def size_of(batch: Any) -> int:
    """The bytes of the tensors and arrays in it, found without running any of the script's code."""
    torch, numpy = sys.modules["torch"], sys.modules.get("numpy")
    kinds = (torch.Tensor,) if numpy is None else (torch.Tensor, numpy.ndarray)
    return sum(int(part.nbytes) for part in randomness.parts(batch) if isinstance(part, kinds))


def at_boundary(source: Any) -> tuple[int | None, bool]:
    """A loader begins an epoch: the number of workers for it, None for the script's own, and whether it is watched.
    Never raises."""
    if not hook.on or hook.is_worker:
        return None, False
    try:
        if not is_training(source):
            return None, False
        if not pilot.done:
            decide(source)
            pilot.looks = 0
            pilot.period.begin_epoch()
    except Exception as error:
        if is_the_scripts(error):
            raise
        leave_alone(error)
    return pilot.workers, not pilot.done


def finish(why: str = "") -> None:
    """Nothing more is tried; what was kept stays."""
    pilot.done = True
    if after_step in steps.after_step:
        steps.after_step.remove(after_step)
    if why:
        say(why)


def is_training(source: Any) -> bool:
    """The loader that feeds the steps, iterated with gradients; known once it has fed a first epoch."""
    training = steps.state.training_loader
    return bool(training) and known(source).id == training and sys.modules["torch"].is_grad_enabled()


def decide(source: Any) -> None:
    period = pilot.period
    if period is None:
        pilot.own = source.num_workers
        randomness.watch_workers()
        pilot.period = Period(pilot.own)
        return
    if pilot.lost:
        pilot.period = pilot.tried or period
        settle(False, pilot.lost)
    elif freezing.state.is_trying() or not period.is_long_enough():
        return
    elif pilot.tried is not None:
        confirm(period)
    elif pilot.before is not None:
        judge(period)
    if not pilot.done and not is_trying():
        propose(source, pilot.period)


def judge(period: Period) -> None:
    """A period with other workers is over."""
    before = pilot.before
    gain = 1 - period.mean() / before.mean()
    is_noise = before.mean() - period.mean() <= noise_of(before, period)
    if gain >= MIN_GAIN and is_noise and len(period.times) < ENOUGH_STEPS:
        return  # steps that begin an epoch take longer, and short epochs have many: another one tells more
    if gain < MIN_GAIN or is_noise:
        settle(False)
    elif gain >= SURE_GAIN:
        settle(True)
    else:  # one more epoch with the old number
        pilot.tried, pilot.period, pilot.workers = period, Period(before.workers), before.workers


def confirm(again: Period) -> None:
    """The old number once more, after a small gain: was it the change, or did the whole run become faster?"""
    tried, pilot.tried = pilot.tried, None
    is_slower = again.mean() - tried.mean() > max(noise_of(again, tried), MIN_GAIN * again.mean())
    pilot.before, pilot.period = again, tried
    settle(is_slower)


def settle(is_kept: bool, why: str = "") -> None:
    before, after = pilot.before, pilot.period
    times = f", {ms(before.mean())} -> {ms(after.mean())} ms" if after.times and not why else ""
    outcome = "kept" if is_kept else "taken back" + (f": {why}" if why else "")
    say(f"at step {after.begun_at_step:,}: {before.workers} -> {after.workers} workers{times}, {outcome}")
    pilot.before = pilot.tried = None
    pilot.lost = ""
    kept = after if is_kept else before
    pilot.workers = None if kept.workers == pilot.own else kept.workers
    pilot.period = kept
    if not is_kept or pilot.changes >= MAX_CHANGES:
        finish()


def propose(source: Any, period: Period) -> None:
    """Another number of workers, where the steps waited for batches."""
    wanted = number_for(period) if period.wait() >= MIN_SHARE * period.mean() else 0
    if wanted <= period.workers:
        pilot.period = Period(period.workers)
        return
    reason = why_not(source, wanted)
    if reason:
        finish(f"the loader keeps its {period.workers} workers: {reason}")
        return
    pilot.changes += 1
    pilot.before, pilot.workers = period, wanted
    pilot.period = Period(wanted)


def number_for(period: Period) -> int:
    """Without workers, a step waits as long as a batch takes to make: so many make them as fast as steps take them."""
    if period.workers:
        return min(2 * period.workers, cores())
    rest = max(period.mean() - period.wait(), 1.0)
    return max(1, min(-int(-period.wait() // rest), cores()))


def cores() -> int:
    """How many cores this rank may use."""
    ranks = max(1, channel.env_int("LOCAL_WORLD_SIZE", 1))
    return max(1, min(len(os.sched_getaffinity(0)), quota()) // ranks)


def quota() -> int:
    """How many cores the cgroup allows (cpu.max: microseconds of each period)."""
    try:
        with open("/sys/fs/cgroup/cpu.max") as file:
            most, each = file.read().split()
        return max(1, -(-int(most) // int(each)))
    except (OSError, ValueError) as error:  # none, or "max"
        if is_the_scripts(error):
            raise
        return sys.maxsize


def why_not(source: Any, workers: int) -> str:
    data = sys.modules["torch.utils.data"]
    if isinstance(source.dataset, data.IterableDataset):
        return "an iterable dataset gives its samples in an order that depends on it"
    if source.batch_sampler is None:
        return "the DataLoader makes no batches"
    if source.persistent_workers:
        return "they are persistent: new ones would draw from the training's random numbers"
    if not getattr(source, "in_order", True):
        return "its batches come in no fixed order"
    if start_method(source) != "fork":
        return "new ones would import the script again, which it may not be written for"
    if source.worker_init_fn is not None:
        return "its worker_init_fn may make samples depend on the number of workers"
    drawn = pilot.draws or (randomness.DRAWS if randomness.was_drawn_in_worker() else "")
    if drawn:
        return drawn
    own = randomness.users_code(source.dataset, source.collate_fn)
    if own and not source.num_workers:
        return f"in workers, what {own} does beside making samples would happen elsewhere, and ahead of the training"
    if len(randomness.parts(source.dataset)) >= randomness.MOST_PARTS:
        return "its dataset has too many parts to check whether any of them draws random numbers"
    if asks_for_worker(source.dataset):
        return "its samples may depend on the number of workers, which the dataset asks for"
    return why_no_room(workers)


def asks_for_worker(dataset: Any) -> bool:
    for part in randomness.parts(dataset):
        for cls in type(part).__mro__:
            for method in vars(cls).values():
                code = getattr(method, "__code__", None)
                if code is not None and "get_worker_info" in code.co_names and is_user_file(code.co_filename):
                    return True
    return False


def why_no_room(workers: int) -> str:
    batches = workers * (PREFETCH + 1) * pilot.batch_bytes
    shared = os.statvfs("/dev/shm")
    free = shared.f_bavail * shared.f_frsize
    if batches > SHARED_MEMORY_SHARE * free:
        return f"/dev/shm has {free >> 20} MiB left, and its batches would take {batches >> 20}"
    memory = free_memory()
    if workers * WORKER_BYTES + batches > memory:
        return f"{memory >> 20} MiB of memory are left"
    return ""


def free_memory() -> int:
    with open("/proc/meminfo") as file:
        known_sizes = dict(line.split(":") for line in file)
    free = int(known_sizes["MemAvailable"].split()[0]) << 10
    try:
        with open("/sys/fs/cgroup/memory.max") as most, open("/sys/fs/cgroup/memory.current") as used:
            free = min(free, int(most.read()) - int(used.read()))
    except (OSError, ValueError) as error:
        if is_the_scripts(error):
            raise
    return free


def should_give_way(source: Any, workers: int) -> bool:
    """Whether they would take cores from a training that computes with several threads: each of its operations would
    wait for the one thread that lost its core."""
    torch = sys.modules["torch"]
    threads = torch.get_num_threads()
    forks = start_method(source) == "fork"
    return forks and 1 < threads and cores() < threads + workers and not torch.cuda.is_initialized()


def give_way(own: Any) -> Any:
    """What workers start with: a lower priority, and then the script's own worker_init_fn."""

    def begin(worker: int) -> None:
        try:
            os.nice(NICENESS)
        except OSError as error:  # a container may forbid it
            if is_the_scripts(error):
                raise
        if own is not None:
            own(worker)

    return begin


def with_workers(module: Any, original: Any, source: Any, workers: int) -> Any:
    """The script's loader with another number of workers for this epoch; afterwards it has its own again."""
    torch = sys.modules["torch"]
    own, generator = (source.num_workers, source.prefetch_factor, source.worker_init_fn), source.generator
    try:
        drawn, drawn_by_own = torch.get_rng_state(), None if generator is None else generator.get_state()
    except Exception as error:
        if is_the_scripts(error):
            raise
        leave_alone(error)
        return original(source)
    source.num_workers, source.prefetch_factor = workers, (own[1] or PREFETCH) if workers else None

    def lost(what: str) -> None:
        pilot.workers = None
        pilot.lost = what
        if pilot.done:
            say(f"at step {hook.steps:,}: {workers} -> {own[0]} workers: {what}")

    try:
        if should_give_way(source, workers):
            source.worker_init_fn = give_way(own[2])
        remove = module._utils.signal_handling._remove_worker_pids
        return rescue.guarded(lambda: original(source), remove, lost)
    except Exception as error:
        if is_the_scripts(error):
            raise
        torch.set_rng_state(drawn)
        if generator is not None:
            generator.set_state(drawn_by_own)
        lost(f"{type(error).__name__}: {error}")
        source.num_workers, source.prefetch_factor, source.worker_init_fn = own
        return original(source)
    finally:
        source.num_workers, source.prefetch_factor, source.worker_init_fn = own
