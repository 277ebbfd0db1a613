"""The setting `fast_data`, which `fullbore run --fast-data` asks for: the training DataLoader's batches come from
fullbore.data, if those are the same.

A DataLoader is taken to be a training one when it is iterated with gradients enabled. Before its first batch it is
translated (fullbore.data.from_torch) and a few samples of both are compared (fullbore.data.check), then the first batch
itself: shape, type, and each row's label against the dataset's. If any of these fails, the script's own loader
is used, and one message says why. The script sees what it saw: `len`, epochs, `sampler.set_epoch`, `break`.
"""

from __future__ import annotations

import os
import sys
import weakref
from typing import Any

from ..core import waits
from ..core.interrupts import is_the_scripts
from ..core.runtime import guarded, hook
from ..core.settings import settings
from ..own import stages

PACKAGE = "FULLBORE_PACKAGE"  # where the package fullbore is


class FastLoader:
    """The replacement of a DataLoader."""

    def __init__(self, dataloader: Any, found: Any, loader: Any) -> None:
        torch = sys.modules["torch"]
        self.labels = [label for _, label in found.samples]
        self.loader = loader
        loader.__dict__["_fullbore_where"] = dataloader.__dict__.get("_fullbore_where")
        sampler = getattr(dataloader.batch_sampler, "sampler", None)
        self.sampler = sampler if hasattr(sampler, "set_epoch") else None
        self.sampler_epoch = -1
        self.epoch = -1
        self.pins = bool(dataloader.pin_memory) and torch.cuda.is_available()

    def iterate(self) -> FastIterator:
        """The script's next epoch: the one it set on its sampler, or one more than the last."""
        epoch = self.epoch + 1
        if self.sampler is not None and self.sampler.epoch != self.sampler_epoch:
            epoch = self.sampler_epoch = self.sampler.epoch
        if epoch != self.epoch + 1:
            self.loader.set_epoch(epoch)
        self.epoch = epoch
        return FastIterator(self)

    def check(self, batch: Any) -> None:
        images, labels = batch
        info = self.loader.last_batch
        expected = [self.labels[ident] for ident in info.ids]
        if labels.tolist() != expected or images.shape[0] != info.rows:
            raise ValueError(f"the first batch has labels {labels.tolist()[:8]}..., the dataset {expected[:8]}...")


class FastIterator:
    """One epoch, its waits recorded like those of torch's iterators."""

    def __init__(self, fast: FastLoader) -> None:
        self._fast = fast
        self._loader = fast.loader
        self._epoch = iter(fast.loader)
        self._first: Any = None
        self._fullbore_ready = self.ready
        self._fullbore_loader = stages.staged(fast.loader)  # its waits count for the loader whose stages explain them

    def ready(self) -> int:
        return self._fast.loader.stats()["ready_batches"]

    def begin(self) -> None:
        """Fetches and checks the first batch."""
        self._first = next(self._epoch, None)
        if self._first is not None:
            self._fast.check(self._first)

    def __iter__(self) -> FastIterator:
        return self

    def __len__(self) -> int:
        return len(self._epoch)

    def _take(self) -> Any:
        first, self._first = self._first, None
        batch = next(self._epoch) if first is None else first
        # A list, as torch's default_collate gives it.
        return [part.pin_memory() for part in batch] if self._fast.pins else list(batch)


def loader_of(iterator: Any) -> Any:
    return iterator._fullbore_loader


FastIterator.__next__ = waits.timed_next(FastIterator._take, loader_of, stages.after_next)  # type: ignore[attr-defined]


_fast: weakref.WeakKeyDictionary[Any, FastLoader | None] = weakref.WeakKeyDictionary()
hook.forget_in_child.append(_fast.clear)


@guarded
def wanted() -> bool:
    """Whether an iteration that begins now should be replaced: requested, and in training."""
    return bool(settings.get("fast_data")) and sys.modules["torch"].is_grad_enabled()


def iterator(dataloader: Any) -> FastIterator | None:
    """The fast iterator, or None if the script's own has to be used. Never raises."""
    thread = hook.here()
    outer, thread.in_next = thread.in_next, True  # the samples compared are read within this wait
    try:
        if dataloader not in _fast:
            return first_iterator(dataloader)
        fast = _fast[dataloader]
        return None if fast is None else fast.iterate()
    except Exception as error:
        if is_the_scripts(error):
            raise
        _fast[dataloader] = None
        say(dataloader, f"stays as it is: {reason(error)}")
        settings.refused("fast_data", reason(error))
        return None
    finally:
        thread.in_next = outer


def first_iterator(dataloader: Any) -> FastIterator:
    """Translates and compares."""
    data = package()
    found = data.translate.understand(dataloader)
    options, compared = same_pixels(data, found)
    fast = FastLoader(dataloader, found, data.from_torch(dataloader, **options))
    made = fast.iterate()
    made.begin()
    _fast[dataloader] = fast
    say(dataloader, f"is served by fullbore.data ({compared})")
    settings.applied("fast_data")
    return made


def same_pixels(data: Any, found: Any) -> tuple[dict[str, Any], str]:
    """The options with which fullbore.data gives the same pixels, and what was compared. Raises NotTranslatable.

    None of the script's own code runs: what was understood reads its images and transforms them with its library's."""
    options: dict[str, Any] = {}
    try:
        compared = data.check.compare(found)
    except data.NotTranslatable:  # decoding at a smaller scale shows in the finest detail
        options["scaled_decode"] = False
        compared = data.check.compare(found, **options)
    return options, compared


def package() -> Any:
    """fullbore.data: from the script's own Python, else the one that came with the program."""
    directory = os.environ.get(PACKAGE) or os.sep
    sys.path.append(directory)
    try:
        import fullbore.data
        import fullbore.data.check
        import fullbore.data.translate

        return fullbore.data
    except ImportError as error:
        version = ".".join(map(str, sys.version_info[:2]))
        raise ImportError(
            f"fullbore.data cannot be imported by this Python {version} ({error}); "
            "run `python -m pip install .` in fullbore's sources with that Python"
        ) from None
    finally:
        if directory in sys.path:
            sys.path.remove(directory)


def reason(error: Exception) -> str:
    reasons = getattr(error, "reasons", None)
    text = "; ".join(reasons) if reasons else f"{type(error).__name__}: {error}"
    return text.replace("\nhint: ", "; ")


def say(dataloader: Any, text: str) -> None:
    """Always a warning: it changes how to interpret the run, and lesser messages do not reach the report."""
    where = dataloader.__dict__.get("_fullbore_where")
    place = "" if where is None else f" of {os.path.basename(where[0])}:{where[1]}"
    hook.say("message", severity="warning", source="--fast-data", text=f"the DataLoader{place} {text}")
