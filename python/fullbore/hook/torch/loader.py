"""DataLoader: its arguments, where it was created, and every wait in its iterator's `next`.

The wait is timed on the iterator classes of torch itself, so that everything built on them (Lightning's prefetcher,
accelerate's DataLoaderShard, WebLoader) is seen once and no object is replaced.
"""

from __future__ import annotations

import functools
import multiprocessing
import sys
import threading
import weakref
from typing import Any, Callable

from ..core.frames import caller_place
from ..core.interrupts import is_the_scripts
from ..core.runtime import clock, guarded, hook
from ..core.waits import Epoch, Loader, introduced, timed_next
from . import fast_data

MAKE_AGAIN = ("accelerate", "lightning", "pytorch_lightning", "lightning_fabric", "keras")
MARK = "fullbore_loader"  # in the configuration that a worker process inherits, whatever its start method


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


def made_by_library() -> str:
    """The package other than torch that calls DataLoader(...), "" if it is the user's code, or one that makes loaders
    of its own accord."""
    frame: Any = sys._getframe(1)
    while frame is not None:
        name = frame.f_globals.get("__name__", "")
        if not name.startswith(("_fullbore_hook", "torch.")):
            package = name.partition(".")[0]
            return package if package in MAKE_AGAIN else ""
        frame = frame.f_back
    return ""


class TorchLoader(Loader):
    """A DataLoader, or an iterator of one that was created without it."""

    __slots__ = ()

    def tells_ready(self, iterator: Any) -> bool:
        return "_task_info" in iterator.__dict__  # one with workers

    def ready(self, iterator: Any) -> int:
        fields = iterator.__dict__
        try:
            queue = fields["_data_queue"]
            count = len(fields["_task_info"]) - fields["_tasks_outstanding"]  # arrived out of order, and kept
            count += queue.qsize()
            results = fields["_worker_result_queue"]
            if results is not queue:  # a thread pins between the two
                count += results.qsize()
            return max(0, count)
        except (KeyError, NotImplementedError, OSError) as error:
            if is_the_scripts(error):
                raise
            return -1


def known(source: Any) -> Loader:
    return introduced(source, TorchLoader, about)


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
        "default_collate": is_default_collate(get("collate_fn")),
        "start_method": start_method(source),
    }


def start_method(source: Any) -> str:
    """How its workers start: only "fork" does without importing the script again, and Python 3.14 forks no more unless
    somebody asks. Asking `multiprocessing` plainly would settle it, and the script could not choose any more."""
    own = getattr(source, "multiprocessing_context", None)
    if own is not None:
        return str(own.get_start_method())
    return multiprocessing.get_start_method(allow_none=True) or multiprocessing.get_all_start_methods()[0]


def is_default_collate(collate: Any) -> bool:
    """Whether torch's own function puts samples together."""
    own = getattr(collate, "__module__", None) == "torch.utils.data._utils.collate"
    return own and collate.__name__ == "default_collate"


def is_shuffled(sampler: Any) -> bool | None:
    if sampler is None:
        return None
    shuffle = getattr(sampler, "shuffle", None)  # DistributedSampler
    return shuffle if isinstance(shuffle, bool) else "Random" in type(sampler).__name__


def about(source: Any) -> dict[str, Any]:
    dataset = getattr(source, "dataset", getattr(source, "_dataset", None))
    try:
        length: int | None = len(dataset)
    except Exception as error:  # an iterable has none, and some raise errors of their own
        if is_the_scripts(error):
            raise
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
        if getattr(source, "num_workers", 0):
            note_threads()
        return loader
    except Exception as error:
        if not hook.fail("iter", error):
            raise
        return None


OF_LOADERS = ("fullbore-", "QueueFeederThread", "pin_memory")
MAX_THREADS = 8


def note_threads() -> None:
    """The script's other threads while workers are about to be forked: a lock that one of them holds at that moment
    stays locked in the worker for ever."""
    here = threading.get_ident()
    names = [t.name for t in threading.enumerate() if t.ident != here and not t.name.startswith(OF_LOADERS)]
    names = [name for name in names if not name.endswith("(_pin_memory_loop)")]
    if names or "threads_at_fork" in hook.facts:
        hook.fact("threads_at_fork", names[:MAX_THREADS])


@guarded
def after_iter(loader: Loader, iterator: Any, begin: int) -> None:
    configuration = process_configuration()
    if configuration is not None:
        configuration.pop(MARK, None)
    if hasattr(iterator, "__dict__"):
        loader = iterator.__dict__.get("_fullbore_loader", loader)  # another took the DataLoader's place
        iterator.__dict__["_fullbore_epoch"] = Epoch(loader, begin, clock(), loader.tells_ready(iterator))
        say_draw(iterator)


def process_configuration() -> dict[str, Any] | None:
    process = sys.modules.get("multiprocessing.process")
    return getattr(process.current_process(), "_config", None) if process is not None else None


def attach(module: Any) -> None:
    """Patches torch.utils.data.dataloader."""
    attach_dataloader(module.DataLoader)
    module._BaseDataLoaderIter.__next__ = timed_next(module._BaseDataLoaderIter.__next__, known)
    attach_draws(module._BaseDataLoaderIter)


LONG_DRAW_NS = 1_000_000  # shorter ones are not worth a line


def attach_draws(Iterator: Any) -> None:
    """A sampler draws an epoch's order when it is first asked, in the training's own process: workers do not help."""
    init, reset = Iterator.__init__, Iterator._reset

    @functools.wraps(init)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        init(self, *args, **kwargs)
        time_draw(self)

    @functools.wraps(reset)
    def _reset(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = reset(self, *args, **kwargs)
        time_draw(self)
        return result

    Iterator.__init__ = __init__
    Iterator._reset = _reset


@guarded
def time_draw(iterator: Any) -> None:
    """For the next call of `_next_index` alone: later ones find the method of the class again."""
    if not hook.on or hook.is_worker:
        return
    reference = weakref.ref(iterator)

    def _next_index() -> Any:
        iterator = reference()
        iterator.__dict__.pop("_next_index", None)
        begin = clock()
        try:
            return iterator._next_index()
        finally:
            iterator.__dict__["_fullbore_draw_ns"] = clock() - begin
            say_draw(iterator)

    iterator.__dict__["_next_index"] = _next_index


@guarded
def say_draw(iterator: Any) -> None:
    """Once the iterator has its epoch: one with workers draws while it is still being made."""
    epoch = iterator.__dict__.get("_fullbore_epoch")
    if epoch is None:
        return
    taken = iterator.__dict__.pop("_fullbore_draw_ns", 0)
    if taken >= LONG_DRAW_NS:
        hook.say("draw", id=epoch.loader.id, ns=taken)


def attach_dataloader(DataLoader: Any) -> None:
    init, make_iterator, new_iterator = DataLoader.__init__, DataLoader.__iter__, DataLoader._get_iterator

    @functools.wraps(init)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        init(self, *args, **kwargs)
        note_place(self)

    @functools.wraps(make_iterator)
    def __iter__(self: Any) -> Any:
        return made(self, make_iterator, True)

    @functools.wraps(new_iterator)
    def _get_iterator(self: Any) -> Any:
        # A subclass that keeps one iterator for all epochs (ultralytics, YOLOv5) has an __iter__ of its own.
        return made(self, new_iterator, False)

    DataLoader.__init__ = __init__
    DataLoader.__iter__ = __iter__
    DataLoader._get_iterator = _get_iterator


def made(self: Any, make: Callable[[Any], Any], may_replace: bool) -> Any:
    """The iterator that `make` makes, or another that takes its place."""
    loader = before_iter(self)
    if loader is None:
        return make(self)
    begin = clock()
    iterator = None
    try:
        iterator = fast_data.iterator(self) if may_replace and fast_data.wanted() else None
        if iterator is None:
            iterator = make(self)
        return iterator
    finally:
        after_iter(loader, iterator, begin)
