"""What a batch costs where it is fetched: in a loader's worker process, or inline in the trainer.

A fetcher of torch is given timed stand-ins for its dataset and its collate function; the user's objects are not
changed. One record per batch: wall time, CPU time, the time without a core, collate, the slowest sample.
"""

from __future__ import annotations

import functools
import sys
from typing import Any, Callable

from ..core import channel, native
from ..core.files import Kept
from ..core.interrupts import is_the_scripts
from ..core.runtime import Thread, clock, get_ident, hook
from .loader import MARK, is_default_collate, process_configuration
from .readings import MAX_SLOWEST_US, Judged, TimedCollate, TimedDataset, TimedIterator, cpu_clock
from .slices import looking_first

judged = Judged()


def timed_collate(collate: Callable[[Any], Any], readings: Any) -> Callable[[Any], Any]:
    return TimedCollate(collate, readings)


def collate_for(fetcher: Any, readings: Any) -> Callable[[Any], Any]:
    """A timed collate function; where samples may be slices, one that looks at the first batch."""
    collate = fetcher.collate_fn
    timed = timed_collate(collate, readings)
    if hook.is_worker or not fetcher.auto_collation or not is_default_collate(collate) or not one_by_one(fetcher):
        return timed
    return timed_collate(looking_first(fetcher, collate, timed), readings)


def one_by_one(fetcher: Any) -> bool:
    """Whether a batch's samples are asked for one by one, by their indices."""
    if hasattr(fetcher, "dataset_iter"):
        return False
    return is_plain_subset(fetcher.dataset) or not callable(getattr(fetcher.dataset, "__getitems__", None))


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
        readings, times_samples = judged.go_on(fetcher.dataset)
        fetcher._fullbore_readings = readings
        fetcher.collate_fn = collate_for(fetcher, readings)
        iterator = getattr(fetcher, "dataset_iter", None)
        readings.counts_collated = iterator is not None and bool(fetcher.auto_collation)
        fetcher._fullbore_inner = fetcher.dataset if iterator is None else iterator
        if times_samples:
            time_samples(fetcher, True)
    except Exception as error:
        if not hook.fail("fetcher", error):
            raise


def time_samples(fetcher: Any, wanted: bool) -> None:
    """Puts the timed stand-in in the place of the dataset or its iterator, or takes it away."""
    inner, readings = fetcher._fullbore_inner, fetcher._fullbore_readings
    readings.times_samples = wanted
    if hasattr(fetcher, "dataset_iter"):
        fetcher.dataset_iter = TimedIterator(inner, readings) if wanted else inner
    elif wanted:
        fetcher.dataset = TimedDataset(inner, readings, is_plain_subset(inner))
    else:
        fetcher.dataset = inner


def runnable_ns(thread: Thread) -> int:
    """Time this thread has been runnable without a core, -1 unknown (schedstat(5): its second figure)."""
    try:
        if thread.schedstat is None:
            thread.schedstat = Kept.open_for_reading("/proc/thread-self/schedstat")
        return int(thread.schedstat.read(80).split()[1])
    except (OSError, IndexError, ValueError) as error:
        if is_the_scripts(error):
            raise
        thread.schedstat = None  # the script may have closed it
        return -1


def loader_id(thread: Thread) -> int:
    """The loader this fetch is for: the one asked in this thread, or the one this worker was started for."""
    hook.open()
    if not hook.is_worker:
        return thread.loader
    configuration = process_configuration()
    loader = 0 if configuration is None else configuration.get(MARK, 0)
    for begins in hook.worker_begins:
        begins(loader)
    return loader


class Fetch:
    """One fetch in progress."""

    __slots__ = ("thread", "readings", "loader", "begin", "cpu", "waited")

    def __init__(self, thread: Thread, readings: Any, loader: int) -> None:
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
        thread = hook.threads.get(get_ident()) or hook.here()
        readings = fetcher.__dict__.get("_fullbore_readings")
        if thread.in_fetch or readings is None:
            return None
        known = hook.channel is not None and not hook.is_worker
        return Fetch(thread, readings, thread.loader if known else loader_id(thread))
    except Exception as error:
        if not hook.fail("fetch", error):
            raise
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
        if not hook.fail("fetch", error):
            raise


def judge(fetcher: Any, readings: Any, sample_ns: float) -> None:
    """Decides whether samples are worth timing one by one in the next batch."""
    wanted = readings.wants_samples(sample_ns)
    if wanted != readings.times_samples:
        time_samples(fetcher, wanted)


hook.loader_id, hook.time_samples = loader_id, time_samples
if native.extension is not None:
    enter_fetch, leave_fetch = hook.enter_fetch, hook.leave_fetch


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

    Fetcher.__init__ = __init__
    if native.extension is not None:
        run = hook.run_fetch

        @functools.wraps(fetch_batch)
        def timed(self: Any, possibly_batched_index: Any) -> Any:
            return run(fetch_batch, self, possibly_batched_index)

        Fetcher.fetch = timed
        return

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

    Fetcher.fetch = fetch
