"""What a batch costs where it is fetched: in a loader's worker process, or inline in the trainer.

A fetcher of torch is given timed stand-ins for its dataset and its collate function; the user's objects are not
changed. One record per batch: wall time, CPU time, the time without a core, collate, the slowest sample.
"""

from __future__ import annotations

import functools
import os
import sys
import time
from collections.abc import Iterator
from typing import Any, Callable

from ..core import channel
from ..core.runtime import Thread, clock, hook
from .loader import MARK, process_configuration

cpu_clock = time.thread_time_ns
MAX_SLOWEST_US = (1 << 31) - 1

# Samples cheaper than this are not timed one by one: at 0.2 us per reading that would be 1 % of their cost. A batch
# that takes longer than SLOW_BATCH_FACTOR times the mean brings the timing back.
CHEAP_SAMPLE_NS = 20_000
BATCHES_JUDGED = 8
SLOW_BATCH_FACTOR = 4

# CPU time and the time without a core take system calls: 3 us and more per batch. Of fetches shorter than this
# (judged by the previous one) only one in so many is read, and its readings stand for the others.
SHORT_FETCH_NS = 1_000_000
ONE_IN = 16


class FetchClock:
    """The readings of one fetcher's current batch, and averages over its earlier batches."""

    __slots__ = ("collate_ns", "slowest_ns", "samples", "batches", "mean_ns", "fetch_ns", "cpu_share", "waited_share")

    def __init__(self) -> None:
        self.batches = 0
        self.mean_ns = 0.0  # of a sample
        self.fetch_ns = 0  # of the batch before
        self.cpu_share = self.waited_share = 0.0  # of a fetch's time, when last read
        self.restart()

    def restart(self) -> None:
        self.collate_ns = 0
        self.slowest_ns = 0
        self.samples = 0

    def wants_system_time(self) -> bool:
        return self.fetch_ns >= SHORT_FETCH_NS or self.batches % ONE_IN == 0


class TimedDataset:
    """Stands in for a dataset inside a fetcher: times `[index]`, forwards everything else."""

    def __init__(self, dataset: Any, readings: FetchClock, one_by_one: bool) -> None:
        self.__dict__.update(_dataset=dataset, _readings=readings)
        if one_by_one:
            self.__dict__["__getitems__"] = None

    def __getitem__(self, index: Any) -> Any:
        begin = clock()
        sample = self._dataset[index]
        taken = clock() - begin
        readings = self._readings
        if taken > readings.slowest_ns:
            readings.slowest_ns = taken
        return sample

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_dataset"], name)

    def __len__(self) -> int:
        return len(self._dataset)


class TimedIterator:
    """Stands in for an iterable dataset's iterator inside a fetcher."""

    def __init__(self, iterator: Any, readings: FetchClock) -> None:
        self._iterator = iterator
        self._readings = readings

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        begin = clock()
        sample = next(self._iterator)
        taken = clock() - begin
        readings = self._readings
        readings.samples += 1
        if taken > readings.slowest_ns:
            readings.slowest_ns = taken
        return sample

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_iterator"], name)


def timed_collate(collate: Callable[[Any], Any], readings: FetchClock) -> Callable[[Any], Any]:
    def timed(samples: Any) -> Any:
        begin = clock()
        try:
            return collate(samples)
        finally:
            readings.collate_ns += clock() - begin

    return timed


def is_plain_subset(dataset: Any) -> bool:
    """torch's own Subset (random_split) fetches a whole batch by `__getitems__`, but sample by sample inside: unless
    the dataset beneath has `__getitems__` itself, asking it for the samples one by one is the same."""
    data = sys.modules["torch.utils.data"]
    return type(dataset) is data.Subset and not callable(getattr(dataset.dataset, "__getitems__", None))


def wrap_fetcher(fetcher: Any) -> None:
    """Replaces a fetcher's dataset and collate function by timed stand-ins."""
    if not hook.on:
        return
    try:
        if hook.here().in_fetch:
            return
        readings = FetchClock()
        fetcher._fullbore_readings = readings
        fetcher.collate_fn = timed_collate(fetcher.collate_fn, readings)
        if hasattr(fetcher, "dataset_iter"):
            fetcher.dataset_iter = TimedIterator(fetcher.dataset_iter, readings)
        else:
            fetcher._fullbore_dataset = fetcher.dataset
            time_samples(fetcher, True)
    except Exception as error:
        hook.fail("fetcher", error)


def time_samples(fetcher: Any, wanted: bool) -> None:
    """Puts the timed stand-in in the dataset's place, or takes it away."""
    dataset = fetcher._fullbore_dataset
    if wanted:
        fetcher.dataset = TimedDataset(dataset, fetcher._fullbore_readings, is_plain_subset(dataset))
    else:
        fetcher.dataset = dataset


def runnable_ns(thread: Thread) -> int:
    """Time this thread has been runnable without a core, -1 unknown (schedstat(5): its second figure)."""
    fd = thread.schedstat
    if fd is None:
        try:
            fd = os.open("/proc/thread-self/schedstat", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            fd = -1
        thread.schedstat = fd
    if fd < 0:
        return -1
    try:
        return int(os.pread(fd, 80, 0).split()[1])
    except (OSError, IndexError, ValueError):
        return -1


def loader_id(thread: Thread) -> int:
    """The loader this fetch is for: the one asked in this thread, or the one this worker was started for."""
    hook.open()
    if not hook.is_worker:
        return thread.loader
    configuration = process_configuration()
    return 0 if configuration is None else configuration.get(MARK, 0)


class Fetch:
    """One fetch in progress."""

    __slots__ = ("thread", "readings", "loader", "begin", "cpu", "waited")

    def __init__(self, thread: Thread, readings: FetchClock, loader: int) -> None:
        self.thread = thread
        self.readings = readings
        self.loader = loader
        readings.restart()
        thread.in_fetch = True
        self.cpu = self.waited = -1
        if readings.wants_system_time():
            self.waited = runnable_ns(thread)
            self.cpu = cpu_clock()
        self.begin = clock()


def enter_fetch(fetcher: Any) -> Fetch | None:
    if not hook.on:
        return None
    try:
        thread = hook.here()
        readings = fetcher.__dict__.get("_fullbore_readings")
        if thread.in_fetch or readings is None:
            return None
        return Fetch(thread, readings, loader_id(thread))
    except Exception as error:
        hook.fail("fetch", error)
        return None


def leave_fetch(fetcher: Any, fetch: Fetch, asked: Any, got: bool) -> None:
    end = clock()
    thread, readings = fetch.thread, fetch.readings
    thread.in_fetch = False
    if not hook.on or not got:
        return
    try:
        taken = readings.fetch_ns = end - fetch.begin
        if fetch.cpu >= 0:
            readings.cpu_share = (cpu_clock() - fetch.cpu) / taken
            readings.waited_share = (runnable_ns(thread) - fetch.waited) / taken if fetch.waited >= 0 else 0.0
        samples = readings.samples or (len(asked) if fetcher.auto_collation and hasattr(asked, "__len__") else 1)
        packed = samples | min(readings.slowest_ns // 1000, MAX_SLOWEST_US) << 32
        cpu, waited = int(taken * readings.cpu_share), int(taken * readings.waited_share)
        number, record = thread.number, hook.record
        record(channel.FETCH, fetch.loader, number, fetch.begin, end, packed, cpu, readings.collate_ns, waited)
        judge(fetcher, readings, (taken - readings.collate_ns) / max(samples, 1))
    except Exception as error:
        hook.fail("fetch", error)


def judge(fetcher: Any, readings: FetchClock, sample_ns: float) -> None:
    """Decides whether samples are worth timing one by one in the next batch."""
    readings.batches += 1
    dataset = fetcher.__dict__.get("_fullbore_dataset")
    if dataset is None:  # an iterable: its samples have to be counted anyway
        return
    is_slow = sample_ns > SLOW_BATCH_FACTOR * readings.mean_ns
    readings.mean_ns += (sample_ns - readings.mean_ns) / min(readings.batches, 4 * BATCHES_JUDGED)
    if readings.batches < BATCHES_JUDGED:
        return
    wanted = is_slow or readings.mean_ns > CHEAP_SAMPLE_NS
    if wanted != (fetcher.dataset is not dataset):
        time_samples(fetcher, wanted)


def attach(module: Any) -> None:
    """Patches torch.utils.data._utils.fetch."""
    for Fetcher in (module._MapDatasetFetcher, module._IterableDatasetFetcher):
        attach_fetcher(Fetcher)


def attach_fetcher(Fetcher: Any) -> None:
    init, fetch_batch = Fetcher.__init__, Fetcher.fetch

    @functools.wraps(init)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        init(self, *args, **kwargs)
        wrap_fetcher(self)

    @functools.wraps(fetch_batch)
    def fetch(self: Any, possibly_batched_index: Any) -> Any:
        under_way = enter_fetch(self)
        if under_way is None:
            return fetch_batch(self, possibly_batched_index)
        got = False
        try:
            batch = fetch_batch(self, possibly_batched_index)
            got = True
        finally:
            leave_fetch(self, under_way, possibly_batched_index, got)
        return batch

    Fetcher.__init__ = __init__
    Fetcher.fetch = fetch
