"""DataLoader: what it was made with and where, and every wait in its iterator's `next`.

The wait is timed on the iterator classes of torch itself, so that everything built on them (Lightning's prefetcher,
accelerate's DataLoaderShard, WebLoader) is seen once and no object is replaced. A loader inside a loader belongs to
the outer wait.
"""

from __future__ import annotations

import functools
import os
import sys
import weakref
from typing import Any, Callable

from . import channel, fast_data
from .batch import BatchCounter
from .frames import caller_place
from .runtime import Thread, clock, guarded, hook

# An iterator made so shortly before its first `next` (a `for` loop) is part of that wait: one record for both.
SAME_WAIT_NS = 1_000_000
MARK = "fullbore_loader"  # in the configuration that a worker process inherits, whatever its start method


class Loader:
    """One loader of the script: what is written about it, and how its batches are counted."""

    __slots__ = ("id", "counter", "source")

    def __init__(self, ident: int, batch_size: int | None, source: Any) -> None:
        self.id = ident
        self.source = weakref.ref(source)
        self.counter = BatchCounter(batch_size)


class Epoch:
    """What an iterator carries: its loader, and the making of the iterator until the first batch pays for it."""

    __slots__ = ("loader", "begin", "end")

    def __init__(self, loader: Loader, begin: int, end: int) -> None:
        self.loader = loader
        self.begin = begin  # 0 once the first batch came
        self.end = end


loaders: dict[int, Loader] = {}
kept_alive: list[Any] | None = None  # for drain.py
hook.forget_in_child.append(loaders.clear)
_places: list[Any] = []  # (weak reference to a loader, its place), the latest ones


@guarded
def note_place(loader: Any) -> None:
    """Notes where the user made a loader. A library that makes it again (accelerate, Lightning) keeps the place."""
    if "_fullbore_where" in loader.__dict__:
        return
    where = caller_place()
    dataset = getattr(loader, "dataset", None)
    for reference, place in _places:
        other = reference()
        if other is not None and other is not loader and other.dataset is dataset and made_by_library():
            where = place
    if where is not None:
        loader.__dict__["_fullbore_where"] = where
        _places.append((weakref.ref(loader), where))
        del _places[:-32]


def made_by_library() -> bool:
    """Whether a package other than torch calls DataLoader(...), rather than the user's code."""
    frame: Any = sys._getframe(1)
    while frame is not None:
        name = frame.f_globals.get("__name__", "")
        if not name.startswith(("_fullbore_hook", "torch.")):
            return name.partition(".")[0] in ("accelerate", "lightning", "pytorch_lightning", "lightning_fabric")
        frame = frame.f_back
    return False


def known(source: Any) -> Loader:
    """The Loader of a DataLoader, or of an iterator that came without one."""
    return introduced(source, Loader, about)


def introduced(source: Any, make: type[Loader], about: Callable[[Any], Any]) -> Loader:
    """What stands for a loader of the script; tells the recorder about it when it is new."""
    here = os.getpid()  # a loader that was pickled into this process brings the id of another
    pid, ident = source.__dict__.get("_fullbore_id", (here, 0))
    loader = loaders.get(ident) if pid == here else None
    if loader is None:
        ident = len(loaders) + 1
        said = about(source)
        loader = loaders[ident] = make(ident, said["args"]["batch_size"], source)
        if kept_alive is not None:
            kept_alive.append(source)
        source.__dict__["_fullbore_id"] = (here, ident)
        hook.say("loader", id=ident, where=where_made(source), **said)
    return loader


def where_made(source: Any) -> str | None:
    where = source.__dict__.get("_fullbore_where")
    return None if where is None else f"{where[0]}:{where[1]}"


def describe(source: Any) -> dict[str, Any]:
    def get(name: str) -> Any:
        return getattr(source, name, getattr(source, "_" + name, None))

    batch_sampler = get("batch_sampler")
    sampler = getattr(batch_sampler, "sampler", None) or get("sampler")
    batch_size = get("batch_size")
    if batch_size is None:
        batch_size = getattr(batch_sampler, "batch_size", None)
    return {
        "batch_size": batch_size if isinstance(batch_size, int) else None,
        "num_workers": get("num_workers"),
        "pin_memory": get("pin_memory"),
        "prefetch_factor": get("prefetch_factor") if get("num_workers") else None,
        "persistent_workers": get("persistent_workers"),
        "drop_last": get("drop_last"),
        "shuffle": is_shuffled(sampler),
    }


def is_shuffled(sampler: Any) -> bool | None:
    if sampler is None:
        return None
    shuffle = getattr(sampler, "shuffle", None)  # DistributedSampler
    return shuffle if isinstance(shuffle, bool) else "Random" in type(sampler).__name__


def about(source: Any) -> dict[str, Any]:
    dataset = getattr(source, "dataset", getattr(source, "_dataset", None))
    try:
        length: int | None = len(dataset)
    except Exception:  # an iterable has none, and some raise errors of their own
        length = None
    return {"args": describe(source), "dataset": type(dataset).__name__, "dataset_len": length}


def before_iter(source: Any) -> Loader | None:
    """A DataLoader makes an iterator: workers started from now on learn which loader they work for."""
    if not hook.on:
        return None
    try:
        if hook.here().in_next:
            return None
        hook.open()
        if hook.is_worker:
            return None
        loader = known(source)
        configuration = process_configuration()
        if configuration is not None:
            configuration[MARK] = loader.id
        return loader
    except Exception as error:
        hook.fail("iter", error)
        return None


@guarded
def after_iter(loader: Loader, iterator: Any, begin: int) -> None:
    configuration = process_configuration()
    if configuration is not None:
        configuration.pop(MARK, None)
    if hasattr(iterator, "__dict__"):
        loader = iterator.__dict__.get("_fullbore_loader", loader)  # another took the DataLoader's place
        iterator.__dict__["_fullbore_epoch"] = Epoch(loader, begin, clock())


def process_configuration() -> dict[str, Any] | None:
    process = sys.modules.get("multiprocessing.process")
    return getattr(process.current_process(), "_config", None) if process is not None else None


def ready(iterator: Any) -> int:
    """Batches that are there already when `next` is entered; -1 where nobody can tell."""
    fields = iterator.__dict__
    if "_fullbore_ready" in fields:
        return fields["_fullbore_ready"]()
    waiting = fields.get("_task_info")
    if waiting is None:
        return -1
    try:
        queue = fields["_data_queue"]
        count = len(waiting) - fields["_tasks_outstanding"]  # arrived out of order, and kept
        count += queue.qsize()
        results = fields["_worker_result_queue"]
        if results is not queue:  # a thread pins between the two
            count += results.qsize()
        return max(0, count)
    except (KeyError, NotImplementedError, OSError):
        return -1


class Wait:
    """One `next` under way."""

    __slots__ = ("thread", "epoch", "outer_phase", "ready", "begin")

    def __init__(self, iterator: Any, thread: Thread) -> None:
        epoch = iterator.__dict__.get("_fullbore_epoch")
        if epoch is None:  # made by other code than DataLoader.__iter__
            epoch = iterator.__dict__["_fullbore_epoch"] = Epoch(known(iterator), 0, 0)
        self.epoch = epoch
        self.ready = ready(iterator)
        self.thread = thread
        self.outer_phase, thread.phase = thread.phase, channel.NEXT
        thread.loader = epoch.loader.id
        thread.in_next = True
        self.begin = clock()


def enter_next(iterator: Any) -> Wait | None:
    """None where this wait is not ours to time: inside another one, in a worker, or switched off."""
    if not hook.on:
        return None
    try:
        thread = hook.here()
        if thread.in_next:
            return None
        if hook.channel is None:
            hook.open()
        return None if hook.is_worker else Wait(iterator, thread)
    except Exception as error:
        hook.fail("next", error)
        return None


def leave_next(wait: Wait, batch: Any, got: bool) -> None:
    end = clock()
    thread, epoch, begin = wait.thread, wait.epoch, wait.begin
    thread.in_next = False
    thread.phase = wait.outer_phase
    if not hook.on:
        return
    try:
        loader, number = epoch.loader, thread.number
        samples, tokens = loader.counter.count(batch) if got else (0, 0)
        first = 0
        if epoch.begin:
            first = 1
            if begin - epoch.end < SAME_WAIT_NS:
                begin = epoch.begin
            else:
                hook.record(channel.NEXT, loader.id, number, epoch.begin, epoch.end, 0, -1, 1)
            epoch.begin = 0
        hook.record(channel.NEXT, loader.id, number, begin, end, samples, wait.ready, first, tokens)
        if got:
            thread.fed_by = loader
    except Exception as error:
        hook.fail("next", error)


def attach(module: Any) -> None:
    """Patches torch.utils.data.dataloader."""
    attach_dataloader(module.DataLoader)
    attach_iterator(module._BaseDataLoaderIter)


def attach_dataloader(DataLoader: Any) -> None:
    init, make_iterator = DataLoader.__init__, DataLoader.__iter__

    @functools.wraps(init)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        init(self, *args, **kwargs)
        note_place(self)

    @functools.wraps(make_iterator)
    def __iter__(self: Any) -> Any:
        loader = before_iter(self)
        if loader is None:
            return make_iterator(self)
        begin = clock()
        iterator = None
        try:
            iterator = fast_data.iterator(self) if fast_data.wanted() else None
            if iterator is None:
                iterator = make_iterator(self)
            return iterator
        finally:
            after_iter(loader, iterator, begin)

    DataLoader.__init__ = __init__
    DataLoader.__iter__ = __iter__


def attach_iterator(Iterator: Any) -> None:
    take = Iterator.__next__

    @functools.wraps(take)
    def __next__(self: Any) -> Any:
        wait = enter_next(self)
        if wait is None:
            return take(self)
        got, batch = False, None
        try:
            batch = take(self)
            got = True
        finally:
            leave_next(wait, batch, got)
        return batch

    Iterator.__next__ = __next__
