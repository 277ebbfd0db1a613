"""Drains the training loader alone: what `fullbore loader bench --script train.py` does instead of recording.

At the first optimizer step that a DataLoader feeds, the script is paused, that DataLoader object is iterated
alone for a few seconds, the result is written to $FULLBORE_DRAIN/<rank>.json, and the process ends. The script's
own iterator is idle meanwhile: its workers fill their queues once and then wait.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import resource
import sys
import time
from typing import Any

from ..core import channel, steps, waits
from ..core.runtime import hook
from . import loader

DIRECTORY = os.environ.get("FULLBORE_DRAIN", "")
SECONDS = float(os.environ.get("FULLBORE_DRAIN_SECONDS", "5"))
WARM_UP_SHARE = 0.25  # of that time, before the clock runs
# Steps without a batch of a DataLoader (a warm-up on made-up data) before we say that none feeds the training.
PATIENCE = 50
TICKS = os.sysconf("SC_CLK_TCK")


def attach() -> None:
    waits.kept_alive = []  # a DataLoader made in the `for` itself is gone once it has made its iterator
    steps.after_step.append(after_step)


def after_step(optimizer: Any, thread: Any, end: int) -> None:
    feeding = thread.fed_by
    source = feeding.source() if isinstance(feeding, loader.TorchLoader) else None
    if source is None:
        if hook.steps >= PATIENCE:
            finish({"error": "no torch DataLoader feeds the optimizer steps"})
        return
    hook.on = False  # nothing of this is recorded
    try:
        result = {**describe(source), **drain(source, feeding.counter), "fast": fast(source)}
    except BaseException as error:  # Ctrl-C too: the script must not go on training
        result = {"error": f"the loader raised {type(error).__name__}: {error}"}
    finish(result)


def describe(source: Any) -> dict[str, Any]:
    dataset = getattr(source, "dataset", None)
    try:
        length: int | None = len(dataset)  # type: ignore[arg-type]
    except Exception:  # an iterable dataset has none
        length = None
    where = source.__dict__.get("_fullbore_where")
    return {
        **loader.describe(source),
        "dataset": type(dataset).__name__,
        "dataset_len": length,
        "where": None if where is None else f"{os.path.basename(where[0])}:{where[1]}",
    }


def time_of_children() -> tuple[float, float]:
    """Seconds that this process's children used a core (those that have ended, too), and waited for one."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    used, waited = ended.ru_utime + ended.ru_stime, 0.0
    for child in multiprocessing.active_children():
        try:
            with open(f"/proc/{child.pid}/stat") as file:
                fields = file.read().rpartition(")")[2].split()
            used += (int(fields[11]) + int(fields[12])) / TICKS
            with open(f"/proc/{child.pid}/schedstat") as file:  # schedstat(5): its second figure
                waited += int(file.read().split()[1]) / 1e9
        except (OSError, IndexError, ValueError):
            pass  # it ended just now
    return used, waited


class Stream:
    """The batches of consecutive epochs."""

    def __init__(self, source: Any) -> None:
        self.source = source
        self.iterator = iter(source)
        self.epochs = 0

    def take(self) -> Any:
        for _ in range(2):
            try:
                return next(self.iterator)
            except StopIteration:
                self.epochs += 1
                self.iterator = iter(self.source)
        raise ValueError("an epoch of it has no batches")


def drain(source: Any, counter: Any) -> dict[str, Any]:
    stream = Stream(source)
    stream.take()
    begin = time.monotonic()
    while time.monotonic() - begin < SECONDS * WARM_UP_SHARE:
        stream.take()
    samples = batches = 0
    (used, waited), own = time_of_children(), time.process_time()
    begin = time.monotonic()
    while time.monotonic() - begin < SECONDS:
        samples += counter.count(stream.take())[0]
        batches += 1
    elapsed = time.monotonic() - begin
    used_at_end, waited_at_end = time_of_children()
    return {
        "seconds": elapsed,
        "batches": batches,
        "samples": samples,
        "batches_per_s": batches / elapsed,
        "samples_per_s": samples / elapsed,
        "epochs_ended": stream.epochs,
        "worker_cores": (used_at_end - used) / elapsed,
        "worker_waits": max(0.0, waited_at_end - waited) / elapsed,
        "main_cores": (time.process_time() - own) / elapsed,
    }


def fast(source: Any) -> dict[str, Any]:
    """The speed of the same loader in fullbore.data, or why it cannot be translated."""
    package = os.environ.get("FULLBORE_PACKAGE", "")
    if package:
        sys.path.append(package)  # after the installed packages
    try:
        import fullbore.data
    except ImportError:
        return {"reason": "fullbore.data is not installed in this Python"}
    try:
        equivalent = fullbore.data.from_torch(source)
    except Exception as error:
        return {"reason": str(error).strip() or type(error).__name__}
    stream = Stream(equivalent)
    stream.take()
    begin = time.monotonic()
    while time.monotonic() - begin < SECONDS * WARM_UP_SHARE:
        stream.take()
    samples = 0
    begin = time.monotonic()
    while time.monotonic() - begin < SECONDS:
        samples += len(stream.take()[0])
    return {"samples_per_s": samples / (time.monotonic() - begin)}


def finish(result: dict[str, Any]) -> None:
    """Writes the result and ends the process, workers first."""
    rank = max(channel.rank(), 0)
    result["rank"] = rank
    try:
        path = os.path.join(DIRECTORY, f"{rank}.json")
        with open(path + ".part", "w") as file:
            json.dump(result, file)
        os.replace(path + ".part", path)
    except OSError as error:
        print(f"fullbore: cannot write the measurements: {error}", file=sys.stderr)
    for child in multiprocessing.active_children():
        child.terminate()
    sys.stdout.flush()
    os._exit(0)
