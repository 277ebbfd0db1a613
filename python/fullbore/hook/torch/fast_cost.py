"""What fullbore.data would cost in place of the script's own training loader: the report then offers it with its gain.

Only loaders over torchvision's image folders can be translated. At the first steps it is noted what such a loader does
with some of its files; the loader itself, its workers and its dataset live as long as the script wants. When that ends,
these samples are compared and loaded by fullbore.data, on one thread, which keeps the script's end back for about a
second. Nothing happens in a run that is served by fullbore.data already.
"""

from __future__ import annotations

import time
from typing import Any

from ..core import channel, steps
from ..core.interrupts import is_the_scripts
from ..core.runtime import hook
from . import fast_data, loader

SAMPLES = 32  # a few dozen photos give the mean to some percent, and are read from the page cache
SECONDS = 0.3  # for each of two passes: to warm up, and to measure
BATCH = 8

_kept: dict[int, Any] = {}  # by id of the loader: its translation, or why there is none
hook.forget_in_child.append(_kept.clear)


def attach() -> None:
    steps.after_first_steps.append(after_step)


def after_step(optimizer: Any, thread: Any, end: int) -> None:
    """Notes what the loader that feeds the training does: a script that made it in a function lets go of it at its
    end."""
    feeding = thread.fed_by
    if not isinstance(feeding, loader.TorchLoader) or feeding.id in _kept or fast_data.wanted():
        return
    source = feeding.source()
    if source is None or channel.env_int("LOCAL_RANK", 0) > 0 or not reads_folder(source):
        return
    is_first = not _kept
    _kept[feeding.id] = noted(source)
    if is_first:  # after fullbore.data was imported: what is registered last is called first
        hook.at_end(at_exit)


def noted(dataloader: Any) -> Any:
    try:
        return fast_data.package().translate.understand(dataloader, SAMPLES)
    except ImportError:
        hook.fact("fast_data", "missing")  # fullbore.data is not built for this Python: `fullbore doctor` says so
        return None
    except Exception as error:
        if is_the_scripts(error):
            raise
        return fast_data.reason(error)


def reads_folder(dataloader: Any) -> bool:
    dataset = getattr(dataloader, "dataset", None)
    while type(dataset).__name__ == "Subset":
        dataset = dataset.dataset
    return any(base.__name__ == "DatasetFolder" for base in type(dataset).__mro__)


def at_exit() -> None:
    """Never raises."""
    if not hook.on or hook.channel is None:
        return
    thread = hook.here()
    for ident, found in _kept.items():
        if found is None:
            continue
        try:
            thread.in_next = True  # what is loaded here is not the script's
            said = {"refused": found} if isinstance(found, str) else {"cpu_ns_per_sample": cost_ns(found)}
        except KeyboardInterrupt:
            return  # whoever wants the script to end wants it now
        except Exception as error:
            if is_the_scripts(error):
                raise
            said = {"refused": fast_data.reason(error)}
        finally:
            thread.in_next = False
        hook.say("loader_fast", id=ident, **said)
    _kept.clear()


def cost_ns(found: Any) -> int:
    """CPU time a sample, all threads together."""
    options, _ = fast_data.same_pixels(fast_data.package(), found)
    options.update(rank=0, world_size=1, shuffle=False, drop_last=False, batch_size=BATCH)
    with found.open(threads=1, **options) as loader:
        load_for(SECONDS, loader)  # the first time is slower: files not in the page cache, memory not yet mapped
        begin = time.process_time_ns()
        samples = load_for(SECONDS, loader)
        return (time.process_time_ns() - begin) // samples


def load_for(seconds: float, loader: Any) -> int:
    """How many samples it loaded: at least one batch."""
    samples, until = 0, time.monotonic() + seconds
    while samples == 0 or time.monotonic() < until:
        for images, _ in loader:
            samples += len(images)
            if time.monotonic() >= until:
                break
    return samples
