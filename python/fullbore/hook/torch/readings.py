"""What is read while a fetcher of torch's makes a batch, and the stand-ins that read it.

The user's objects are not changed: a fetcher is given others in their places, which forward everything.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, Callable

from ..core import native
from ..core.runtime import clock

# Samples cheaper than this are not timed one by one: a reading takes 0.1 us, in Python 0.3 us. A batch that takes
# longer than SLOW_BATCH_FACTOR times the mean brings the timing back.
CHEAP_SAMPLE_NS = 20_000
BATCHES_JUDGED = 8
SLOW_BATCH_FACTOR = 4

# CPU time and the time without a core take system calls: 3 us and more per batch. Of fetches shorter than this
# (judged by the previous one) only one in so many is read, and its readings stand for the others.
SHORT_FETCH_NS = 1_000_000
ONE_IN = 16

MAX_SLOWEST_US = (1 << 31) - 1
cpu_clock = time.thread_time_ns


class PythonFetchClock:
    """The readings of one fetcher's current batch, and averages over its earlier batches."""

    __slots__ = ("collate_ns", "slowest_ns", "samples", "batches", "mean_ns", "fetch_ns", "cpu_share", "waited_share")
    __slots__ += ("times_samples", "counts_collated")

    def __init__(self) -> None:
        self.batches = 0
        self.mean_ns = 0.0  # of a sample
        self.fetch_ns = 0  # of the batch before
        self.cpu_share = self.waited_share = 0.0  # of a fetch's time, when last read
        self.times_samples = False  # the stand-in is in its place
        self.counts_collated = False  # an iterable: how many samples came is known once they are put together
        self.restart()

    def restart(self) -> None:
        self.collate_ns = 0
        self.slowest_ns = 0
        self.samples = 0

    def wants_system_time(self) -> bool:
        return self.fetch_ns >= SHORT_FETCH_NS or self.batches % ONE_IN == 0

    def wants_samples(self, sample_ns: float) -> bool:
        """Whether samples are worth timing one by one in the next batch; this one took `sample_ns` for each."""
        self.batches += 1
        is_slow = sample_ns > SLOW_BATCH_FACTOR * self.mean_ns
        self.mean_ns += (sample_ns - self.mean_ns) / min(self.batches, 4 * BATCHES_JUDGED)
        if self.batches < BATCHES_JUDGED:
            return self.times_samples
        return is_slow or self.mean_ns > CHEAP_SAMPLE_NS


class PythonItems:
    def __init__(self, inner: Any, readings: PythonFetchClock) -> None:
        self.__dict__.update(_inner=inner, _readings=readings)

    def __getitem__(self, index: Any) -> Any:
        begin = clock()
        sample = self._inner[index]
        taken = clock() - begin
        readings = self._readings
        if taken > readings.slowest_ns:
            readings.slowest_ns = taken
        return sample


class PythonIteration:
    def __init__(self, inner: Iterator[Any], readings: PythonFetchClock) -> None:
        self._inner = inner
        self._readings = readings

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        begin = clock()
        sample = next(self._inner)
        taken = clock() - begin
        readings = self._readings
        readings.samples += 1
        if taken > readings.slowest_ns:
            readings.slowest_ns = taken
        return sample


class PythonCall:
    def __init__(self, inner: Callable[..., Any], readings: PythonFetchClock) -> None:
        self._inner = inner
        self._readings = readings

    def __call__(self, samples: Any) -> Any:
        readings = self._readings
        if readings.counts_collated and not readings.samples and isinstance(samples, list):
            readings.samples = len(samples)
        begin = clock()
        try:
            return self._inner(samples)
        finally:
            readings.collate_ns += clock() - begin


FetchClock: Any = PythonFetchClock
Items: Any = PythonItems
Iteration: Any = PythonIteration
TimedCollate: Any = PythonCall
if native.extension is not None:
    FetchClock = native.extension.FetchClock
    Items, Iteration = native.extension.TimedItems, native.extension.TimedIteration
    TimedCollate = native.extension.TimedCall
    native.extension.judge_fetches(CHEAP_SAMPLE_NS, BATCHES_JUDGED, SLOW_BATCH_FACTOR, SHORT_FETCH_NS, ONE_IN)


class TimedDataset(Items):
    """Stands in for a dataset inside a fetcher: times `[index]`, forwards everything else."""

    def __init__(self, dataset: Any, readings: Any, one_by_one: bool) -> None:
        super().__init__(dataset, readings)
        if one_by_one:
            self.__dict__["__getitems__"] = None

    def __getattr__(self, name: str) -> Any:
        return getattr(object.__getattribute__(self, "_inner"), name)

    def __len__(self) -> int:
        return len(self._inner)


class TimedIterator(Iteration):
    """Stands in for an iterable dataset's iterator inside a fetcher."""

    def __getattr__(self, name: str) -> Any:
        return getattr(object.__getattribute__(self, "_inner"), name)


class Judged:
    """Readings of earlier fetchers: an epoch's fetcher goes on where the one before it, of the same dataset, ended."""

    MOST = 64
    KEPT = ("batches", "mean_ns", "fetch_ns", "cpu_share", "waited_share")

    def __init__(self) -> None:
        self.readings: dict[int, Any] = {}  # by id() of the dataset: a wrong one is judged anew soon

    def go_on(self, dataset: Any) -> tuple[Any, bool]:
        """Readings for a new fetcher, and whether it begins with timing samples."""
        made, before = FetchClock(), self.readings.get(id(dataset))
        if before is not None:
            for name in self.KEPT:
                setattr(made, name, getattr(before, name))
        elif len(self.readings) >= self.MOST:
            self.readings.clear()
        self.readings[id(dataset)] = made
        return made, before is None or before.times_samples
