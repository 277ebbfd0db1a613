"""The Loader class: its options, and the iteration over batches."""

from __future__ import annotations

import atexit
import contextlib
import json
import logging
import math
import os
import sys
import threading
import warnings
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Callable, Union

from . import _core, deliver, stage, transforms
from .errors import LoaderError, LoaderWarning, argument, printable
from .progress import ProgressBar

Path = Union[str, "os.PathLike[str]"]
logger = logging.getLogger("fullbore.data")

SILENT_WAIT_S = 5.0  # Python's exit waits this long before it says what for
_loaders: weakref.WeakSet[Loader] = weakref.WeakSet()

# The engine's options, as in include/fullbore/loader/options.h.
SOURCE = ("paths", "kind", "fields", "cache_directory", "cache_bytes", "memory_cache_bytes", "s3_endpoint")
SOURCE += ("timeout_s", "retries")
ENGINE = ("transforms", "batch_size", "shuffle", "shuffle_shards", "seed", "rank", "world_size", "drop_last")
ENGINE += ("pad_last", "on_bad_sample", "bad_sample_budget", "dtype", "layout", "image_mode", "apply_exif_orientation")
ENGINE += ("fast_dct", "scaled_decode", "max_image_pixels", "threads", "max_read_threads", "nice", "prefetch_batches")
LEFT_OUT_IF_NONE = ("cache_directory", "cache_bytes", "s3_endpoint", "max_image_pixels")  # the engine has a default

# Options of torch's DataLoader and torchvision's ImageFolder, and what to do instead.
TORCH_OPTIONS = {
    "collate_fn": "rows go straight into the batch; map= can change each of them",
    "dataset": "give the path of its files, or translate the DataLoader with fullbore.data.from_torch(dataloader)",
    "num_workers": "leave it out: the loader chooses the number of threads itself; threads=N fixes it",
    "persistent_workers": "leave it out: threads live as long as the loader",
    "pin_memory": "leave it out: device='cuda' delivers batches on the GPU, from pinned memory",
    "prefetch_factor": "leave it out, or limit the number of finished batches with prefetch_batches=N",
    "root": "use paths",
    "sampler": "the order depends on seed=; shuffle=False keeps the source's",
    "target_transform": "map= can change a row's label",
    "transform": "use transforms, with a list of fullbore.data.transforms",
}


@dataclass(frozen=True)
class BatchInfo:
    """Describes the batch that was delivered last."""

    epoch: int
    index: int  # within this rank's batches of the epoch
    rows: int
    ids: list[int]  # which sample of the source each row is
    valid: list[bool]  # False for rows that only pad the last batch


@dataclass(frozen=True)
class BadSample:
    """A sample that was left out, and why."""

    epoch: int
    id: int
    name: str
    error: str


class Loader:
    """Iterates over the batches of a source; each iteration is one epoch.

    paths: one of the following, or a list: a directory of class directories, tar shards ("train-{000..012}.tar",
    "dir/*.tar"), .tfrecord, .h5, a list file (.txt, .csv, .tsv: one path and label per line), http(s)://...,
    s3://bucket/key.

    Batches are torch tensors if torch is installed, else numpy arrays, in memory that the loader reuses once the last
    tensor in it is gone. A source with two fields gives tuples (images, labels). Images are float32 in [0, 1] of shape
    (batch, 3, height, width) unless `dtype`, `layout` or a Normalize says otherwise; labels are int64 of shape
    (batch,); texts are list[str], other bytes list[bytes].

    The order, random crops and everything else depend only on seed, epoch and world_size, never on threads or timing.

    Raises ArgumentError (a ValueError), MissingFileError (a FileNotFoundError), LoaderError.
    """

    kind = "auto"

    def __new__(cls, *_: Any, **options: Any) -> Any:
        for name in options:
            if name in TORCH_OPTIONS:
                raise TypeError(f"{cls.__name__} has no option {name!r}\nhint: {TORCH_OPTIONS[name]}")
        return super().__new__(cls)

    def __init__(
        self,
        paths: Path | Sequence[Path],
        transforms: Any = (),
        batch_size: int = 1,
        *,
        seed: int = 0,
        shuffle: bool = True,
        shuffle_shards: int = 0,
        drop_last: bool = False,
        pad_last: bool = False,
        rank: int | None = None,
        world_size: int | None = None,
        fields: Sequence[str] = (),
        dtype: Any = "float32",
        layout: str = "nchw",
        image_mode: str = "rgb",
        apply_exif_orientation: bool = False,
        fast_dct: bool = False,
        scaled_decode: bool = True,
        max_image_pixels: int | None = None,
        on_bad_sample: str = "skip",
        bad_sample_budget: float = 0.1,
        map: Callable[..., Any] | None = None,
        map_processes: int = 0,
        cache_directory: Path | None = None,
        cache_bytes: int | None = None,
        memory_cache_bytes: int = 0,
        s3_endpoint: str | None = None,
        timeout_s: float = 30.0,
        retries: int = 5,
        threads: int = 0,
        max_read_threads: int = 32,
        nice: int = 0,
        prefetch_batches: int = 0,
        device: Any = None,
        as_numpy: bool = False,
        progress: bool = False,
    ) -> None:
        """
        batch_size: rows per batch. drop_last leaves out a short last batch; pad_last fills it with repeated samples,
            which last_batch.valid marks.
        seed, shuffle: the order. shuffle_shards=n shuffles within groups of n consecutive shards, for remote data.
        rank, world_size: this process's share; by default torch.distributed's, else $RANK and $WORLD_SIZE.
        fields: what to read from archives: extensions ("jpg", "cls"), features or datasets; "jpg;png": the first of
            these that a sample has.
        dtype: of images: "uint8", "float32", "float16", "bfloat16", or torch's. layout: "nchw", or "nhwc" for (batch,
            height, width, channels). image_mode: "rgb", or "gray" for one channel. apply_exif_orientation: rotate
            images as their EXIF data say.
        fast_dct, scaled_decode: trade accuracy for speed, see docs/loader.md. max_image_pixels: larger images are bad
            samples.
        on_bad_sample: "skip" leaves bad samples out, up to bad_sample_budget, a share of the epoch; "raise" stops at
            the first.
        map: your own function, called with each row (fullbore.data.sample.Sample). map_processes: the number of
            processes that run it; 0: the loader's threads.
        cache_directory: the cache of remote files, with at most cache_bytes (20 GB; 0: no cache). memory_cache_bytes:
            how much to keep of encoded samples in memory. s3_endpoint, timeout_s (without a byte), retries: for remote
            storage.
        threads: 0: as many as the consumer needs. max_read_threads: how many may wait for storage. nice: added to
            their niceness. prefetch_batches: the most finished batches to keep ready.
        device: where to deliver batches ("cuda"). as_numpy: numpy arrays even if torch is installed.
        progress: a progress line on standard error, if that is a terminal.
        """
        self._arguments = {name: value for name, value in locals().items() if name not in ("self", "__class__")}
        if map_processes and map is None:
            raise argument(f"map_processes={map_processes} without map", "give the function to run as map=")
        rank, world_size = placed(rank, world_size)
        self._arguments.update(rank=rank, world_size=world_size)
        # Set if the engine fills the device's memory itself.
        self._cuda = None if as_numpy else deliver.cuda_ordinal(device)
        self._convert = deliver.converter(as_numpy, device, dtype_name(dtype), already_there=self._cuda is not None)
        self._make_batch: Callable[[list[Any]], Any] | None = None
        self._pool: Any = None
        self._said: set[str] = set()
        self._running = False  # a batch was delivered, but not yet the end of its epoch
        self._generation = 0  # of iterators: only the newest is valid
        self.last_batch: BatchInfo | None = None
        self._core = self._open(self._options())
        _loaders.add(self)
        self._say()

    # --- The iteration

    def __iter__(self) -> Iterator[Any]:
        """Begins the next epoch, even after `break`. After load_state_dict, the rest of that epoch."""
        if self._running and self.last_batch is not None:
            self._core.set_epoch(self.last_batch.epoch + 1)
            self._running = False
        self._generation += 1
        return Epoch(self, self._generation, ProgressBar(len(self)) if self._arguments["progress"] else None)

    def __len__(self) -> int:
        """The number of batches per epoch, for this rank."""
        return self._core.batches_per_epoch

    def set_epoch(self, epoch: int) -> None:
        """Makes the next iteration this epoch, from its first batch."""
        self._core.set_epoch(epoch)
        self._running = False
        self._generation += 1

    @property
    def epoch(self) -> int:
        """The current epoch, or the one that the next iteration begins."""
        return self.state_dict()["epoch"]

    @property
    def samples(self) -> int:
        """The number of samples in the source, for all ranks together."""
        return self._core.samples

    @property
    def classes(self) -> list[str]:
        """Names of the labels, in order; empty if labels have no names."""
        return self._core.class_names

    # --- State

    def state_dict(self) -> dict[str, int]:
        """The position of the iteration, exact to the sample; valid for other batch sizes and numbers of ranks, too."""
        return json.loads(self._core.state())

    def load_state_dict(self, state: dict[str, int]) -> None:
        """Makes the next iteration continue there. Raises if the source has a different number of samples."""
        self._core.restore(json.dumps(state))
        self._running = False
        self._generation += 1

    def stats(self) -> dict[str, Any]:
        """What each stage has done since the loader was opened, and how long the consumer waited; times in ns."""
        return self._core.stats()

    @property
    def bad_samples(self) -> list[BadSample]:
        """The first 1,000 samples that were left out."""
        return [BadSample(*found) for found in self._core.bad_samples()]

    # --- Closing

    def close(self) -> None:
        """Ends threads and processes now instead of with the last reference. Batches stay valid."""
        core = self.__dict__.get("_core")
        if self._pool is not None:
            self._pool.close()  # first, because threads may be waiting for it
        if core is not None:
            core.close()

    def __enter__(self) -> Loader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self, has_ended: Callable[[], bool] = sys.is_finalizing) -> None:
        # At the interpreter's end close_all was here before, and what this module imports may be gone.
        if "_pool" in self.__dict__ and not has_ended():
            self.close()

    # --- Pickling: options and position, so that spawned processes can open the loader again

    def __reduce__(self) -> tuple:
        return reopened, (type(self), self._arguments, self.state_dict())

    def __repr__(self) -> str:
        paths = self._arguments["paths"]
        shown = repr(paths) if isinstance(paths, (str, os.PathLike)) or len(paths) <= 2 else f"{len(paths):,} paths"
        return f"{type(self).__name__}({_core.mask_urls(shown)}, batch_size={self._arguments['batch_size']})"

    # --- Internals

    def _options(self) -> dict[str, Any]:
        """As src/loader/core/options/options_json.h defines it."""
        given = self._arguments
        read = {
            "paths": as_paths(given["paths"]),
            "kind": self.kind,
            "fields": [given["fields"]] if isinstance(given["fields"], str) else list(given["fields"]),
            "timeout_s": as_number("timeout_s", given["timeout_s"]),
            "cache_directory": None if given["cache_directory"] is None else os.fspath(given["cache_directory"]),
            "transforms": [transform.describe() for transform in transforms.flat(given["transforms"])],
            "dtype": dtype_name(given["dtype"]),
            "bad_sample_budget": as_number("bad_sample_budget", given["bad_sample_budget"]),
        }

        def options(names: tuple[str, ...]) -> dict[str, Any]:
            values = {name: read[name] if name in read else given[name] for name in names}
            return {name: value for name, value in values.items() if name not in LEFT_OUT_IF_NONE or value is not None}

        return {**options(ENGINE), "source": options(SOURCE)}

    def _open(self, options: dict[str, Any]) -> Any:
        text = json.dumps(options)
        function, processes = self._arguments["map"], self._arguments["map_processes"]
        if function is not None and options["dtype"] == "bfloat16":
            raise argument("map with dtype='bfloat16': numpy has no such type", "use float32, or map in torch")
        made = None
        if function is not None:
            made, self._pool = stage.make(function, processes)
        return _core.open(text, made, -1 if self._cuda is None else self._cuda)

    def _next(self) -> Any:
        if self._cuda is not None:
            self._core.set_stream(deliver.current_stream(self._cuda))
        try:
            batch = self._core.next()
        finally:
            self._say()
        self._running = batch is not None
        if batch is None:
            return None
        self.last_batch = BatchInfo(batch.epoch, batch.index, batch.rows, batch.ids, batch.valid)
        fields = batch.fields()
        if self._make_batch is None:
            self._make_batch = deliver.batch_maker([name for name, _ in fields])
        convert = self._convert
        return self._make_batch([value if isinstance(value, list) else convert(value) for _, value in fields])

    def _say(self) -> None:
        """Passes on the engine's messages, each text once: warnings as warnings, the rest to logging."""
        said = self._core.take_messages()
        if self._pool is not None and self._pool.messages:
            taken, self._pool.messages = self._pool.messages, []
            said += [(1, text) for text in taken]
        for severity, text in said:
            text = printable(text)
            if text in self._said:
                continue
            self._said.add(text)
            if severity == 0:
                logger.info(text)
            else:
                warnings.warn(text, LoaderWarning, stacklevel=frames_of_ours())


class Epoch:
    """One iteration. Ends for good at the end of the epoch, or when a newer iteration begins."""

    def __init__(self, loader: Loader, generation: int, progress: ProgressBar | None) -> None:
        self._loader = loader
        self._generation = generation
        self._progress = progress
        self._ended = False
        # Threads may share an iteration. Without the lock, a waiting thread would get the next epoch's first batch.
        self._turn = threading.Lock()
        self._pid = os.getpid()

    def __iter__(self) -> Epoch:
        return self

    def __len__(self) -> int:
        return len(self._loader)

    def __next__(self) -> Any:
        if os.getpid() != self._pid:
            return self._step()  # raises; a thread of the parent may hold the lock
        with self._turn:
            return self._step()

    def _step(self) -> Any:
        if self._ended:
            raise StopIteration
        loader = self._loader
        if self._generation != loader._generation:
            raise LoaderError(
                "this iteration was ended by a newer one of the same loader, by set_epoch or by load_state_dict\n"
                "hint: open two loaders to iterate twice at the same time"
            )
        batch = loader._next()
        if batch is None:
            self._ended = True
            if self._progress is not None:
                self._progress.end()
            raise StopIteration
        if self._progress is not None and loader.last_batch is not None:
            self._progress.step(loader.last_batch.epoch, loader.last_batch.index, loader.last_batch.rows)
        return batch


# --- Arguments


def as_paths(paths: Any) -> list[str]:
    one = isinstance(paths, (str, bytes, os.PathLike))
    try:
        return [os.fsdecode(path) for path in ([paths] if one else paths)]
    except TypeError:
        raise argument(f"paths cannot be {_core.mask_urls(repr(paths))}", "a path or URL, or a list of them") from None


def as_number(name: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise argument(f"{name} cannot be {value!r}", "a number") from None


def dtype_name(dtype: Any) -> str:
    """The name of "float32", torch.float32, numpy.float32 or numpy.dtype("float32")."""
    if isinstance(dtype, str):
        return dtype
    return getattr(dtype, "__name__", str(dtype)).replace("torch.", "")


def placed(rank: int | None, world_size: int | None) -> tuple[int, int]:
    """This process's rank and the number of ranks: as given, from torch.distributed, the environment, or 0 of 1."""
    if (rank is None) != (world_size is None):
        raise argument(f"rank={rank} and world_size={world_size}: only one of them is given", "give both or neither")
    if rank is not None and world_size is not None:
        return rank, world_size
    distributed = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank(), distributed.get_world_size()
    try:
        return int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    except KeyError:
        return 0, 1
    except ValueError:
        raise argument(
            f"RANK={os.environ['RANK']!r} and WORLD_SIZE={os.environ['WORLD_SIZE']!r} are not both numbers",
            "correct them, or give rank= and world_size=",
        ) from None


def frames_of_ours() -> int:
    """The stack level of the line in the script, for warnings that our caller issues."""
    here, level, frame = os.path.dirname(__file__), 1, sys._getframe(1)
    while frame.f_back is not None and os.path.dirname(frame.f_code.co_filename) == here:
        frame, level = frame.f_back, level + 1
    return level


def reopened(kind: type[Loader], arguments: dict[str, Any], state: dict[str, int]) -> Loader:
    loader = kind(**arguments)
    loader.load_state_dict(state)
    return loader


@atexit.register
def close_all() -> None:
    """Runs before the interpreter ends: no thread of ours may ask for it afterwards."""
    _core.allow_no_more_calls()
    with contextlib.ExitStack() as ending:  # one that fails, or that Ctrl-C interrupts, does not stop the others
        ending.callback(await_calls)
        for loader in open_loaders():
            ending.callback(loader.close)


def open_loaders() -> list[Loader]:
    while True:
        try:
            return list(_loaders)
        except RuntimeError:  # another thread opened one meanwhile
            continue


def await_calls() -> None:
    if not _core.await_calls(SILENT_WAIT_S):
        logger.warning("Python's exit waits for a map= function that does not return; press Ctrl-C to exit without it")
        _core.await_calls(math.inf)
