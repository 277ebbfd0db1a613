"""What every process is asked, whatever it trains with: its garbage collections, and at its end, the `bye`."""

from __future__ import annotations

import errno
import gc
import os
import sys
from _signal import SIGBUS, SIGKILL, SIGTERM, strsignal
from collections.abc import Iterator
from time import sleep
from typing import Any

from . import channel, native
from .frames import is_user_file, known_as, variables
from .interrupts import is_the_scripts
from .leaving import clear_away
from .runtime import clock, enter, guarded, hook, leave, never_interrupted

GARBAGE_NS = 1_000_000  # a collection shorter than this is not worth a record
CALIBRATION_ROUNDS = 200


class Garbage:
    """Where a collection is timed without the extension, whose callback runs no Python code: Python drops what a
    callback of gc.callbacks raises, and runs the script's functions for signals where Python code begins."""

    def __init__(self) -> None:
        self.begin = 0

    def note(self, phase: str, _: Any) -> None:
        if phase == "start":
            self.begin = clock()
            return
        end = clock()
        hook.garbage_ns += end - self.begin
        if end - self.begin >= GARBAGE_NS and hook.on:
            hook.record(channel.OTHER, channel.GARBAGE_COLLECTION, hook.here().number, self.begin, end)


def attach() -> None:
    gc.callbacks.append(never_interrupted(Garbage().note) if native.extension is None else hook.note_collection)
    hook.at_end(say_goodbye)


@guarded
def say_goodbye() -> None:
    if hook.channel is None:
        return
    try:
        # Of the process; a run that is a part of it knows better than what was printed last.
        note_what_ended_it(hook.ended_by if hook.runs else getattr(sys, "last_value", None))
    finally:
        hook.say("bye", hook_ns=hook.channel.ring.written() * cost_of_an_event() + hook.extra_ns, steps=hook.steps)
        hook.on = False
        clear_away(hook.directory)


def note_what_ended_it(raised: Any) -> None:
    for note in (note_killed_worker, note_full_shared_memory, note_open_files, note_full_device):
        try:
            any(note(each) for each in with_causes(raised))
        except Exception as error:  # the text of an exception may be made by a method of the script's
            if is_the_scripts(error) and not note_killed_worker(error):  # torch's handler may run while we look
                raise


MAX_CAUSES = 8
ENDS_WITHIN_NS = 100_000_000
LOOK_AGAIN_S = 0.002
IN_ENGLISH = {SIGKILL: "Killed", SIGBUS: "Bus error"}  # which findings know; strsignal speaks the script's language
LOADER = "torch.utils.data.dataloader"
CONNECTION = "multiprocessing.connection"


def with_causes(raised: Any) -> Iterator[BaseException]:
    """And what it was raised from: of a worker that a signal has ended, torch says so first, and from that, that it
    exited unexpectedly."""
    for _ in range(MAX_CAUSES):
        if raised is None:
            return
        yield raised
        raised = raised.__cause__


def note_killed_worker(raised: BaseException) -> bool:
    """The signal that ended a loader's worker, where the script ended by that. Also as a message: the facts of a
    process that took no step yet are not kept."""
    signal = signal_said_by_torch(raised) or signal_that_ended_a_worker(raised)
    if not signal:
        return False
    hook.fact("worker_killed_by", signal)
    hook.say("message", severity="info", source="worker-killed", text=signal)
    return True


def signal_said_by_torch(raised: BaseException) -> str:
    """By its handler of SIGCHLD, which Python runs wherever the script then is."""
    text = str(raised) if isinstance(raised, RuntimeError) else ""
    if not text.startswith("DataLoader worker") or "signal: " not in text:
        return ""
    return text.partition("signal: ")[2].partition(".")[0]


def signal_that_ended_a_worker(raised: BaseException) -> str:
    """Where the connection to a loader's worker broke before that handler ran: by the workers' exit codes."""
    gone = isinstance(raised, RuntimeError) and str(raised).endswith("exited unexpectedly")
    if not gone and not (isinstance(raised, (EOFError, ConnectionError)) and is_raised_in(raised, CONNECTION)):
        return ""
    at = raised.__traceback__
    while at is not None:
        if at.tb_frame.f_globals.get("__name__") == LOADER:
            workers = getattr(variables(at.tb_frame).get("self"), "_workers", None)
            if workers:
                return signal_that_ended_one_of(workers)
        at = at.tb_next
    return ""


def signal_that_ended_one_of(workers: list[Any]) -> str:
    """A process closes its connections a little before it can be seen to have ended. Those that live are asked to end
    by SIGTERM, perhaps before we are."""
    until = clock() + ENDS_WITHIN_NS
    while True:
        codes = [worker.exitcode for worker in workers]
        for code in codes:
            if code is not None and code < 0 and code != -SIGTERM:
                return IN_ENGLISH.get(-code) or strsignal(-code) or ""
        if None not in codes or clock() > until:
            return ""
        sleep(LOOK_AGAIN_S)


NO_SPACE = "No space left on device"
IN_SHARED_MEMORY = ("(shm)", "shared memory", "</torch_", "/dev/shm/")  # torch of several versions, NCCL
MAX_SAID = 200
SEMAPHORES = "multiprocessing.synchronize"  # a lock of Python's is a file in /dev/shm, and the error does not say so


def note_full_shared_memory(raised: BaseException) -> bool:
    """What was said of no room in /dev/shm, where the script ended by that, in whatever process it was raised first."""
    if not isinstance(raised, (RuntimeError, OSError)):
        return False
    for line in str(raised).splitlines():
        if NO_SPACE in line and any(name in line for name in IN_SHARED_MEMORY):
            return say_full(line.strip()[:MAX_SAID])
    if isinstance(raised, OSError) and raised.errno == errno.ENOSPC and is_raised_in(raised, SEMAPHORES):
        return say_full("no room for a semaphore of multiprocessing")
    return False


def say_full(text: str) -> bool:
    hook.say("message", severity="info", source="shared-memory", text=text)
    return True


TOO_MANY = "Too many open files"
OF_A_HAND_OVER = ("Communication with the workers", "</torch_", "(shm)")  # torch, of what hands over its tensors
NO_DESCRIPTOR_CAME = " items of ancdata"  # of multiprocessing, where the receiver could open no more
HAND_OVER = ("multiprocessing.", "torch.multiprocessing.")


def note_open_files(raised: BaseException) -> bool:
    """The limit of open files, after which what was said, where the script ended because another process's tensors
    could not be opened. A script that opens too many files itself is not meant."""
    line = next((each.strip() for each in str(raised).splitlines() if is_of_open_files(each)), "")
    if not line and isinstance(raised, OSError) and raised.errno == errno.EMFILE and is_of_hand_over(raised):
        line = TOO_MANY
    if not line or not isinstance(raised, (RuntimeError, OSError)):
        return False
    limit = os.sysconf("SC_OPEN_MAX")  # asked without a file
    hook.say("message", severity="info", source="open-files", text=f"{limit}: {line[:MAX_SAID]}")
    return True


def is_of_open_files(line: str) -> bool:
    of_workers = TOO_MANY in line and any(words in line for words in OF_A_HAND_OVER)
    return of_workers or ("received " in line and line.rstrip().endswith(NO_DESCRIPTOR_CAME))


def is_of_hand_over(raised: BaseException) -> bool:
    at = raised.__traceback__
    while at is not None:
        if str(at.tb_frame.f_globals.get("__name__")).startswith(HAND_OVER):
            return True
        at = at.tb_next
    return False


OUT_OF_MEMORY = "OutOfMemoryError"  # torch's, by whatever name a version exports it
ADVICE = " If reserved but unallocated memory is large"
MAX_SAID_OF_MEMORY = 600


def note_full_device(raised: BaseException) -> bool:
    """What torch said of a request that the device had no room for, after the line that made it, where the script ended
    by that. Findings read the sizes in it: diagnose/refused_memory.h."""
    if not isinstance(raised, RuntimeError) or type(raised).__name__ != OUT_OF_MEMORY:
        return False
    place = line_that_raised(raised)
    said = str(raised).partition(ADVICE)[0].strip()[:MAX_SAID_OF_MEMORY]
    hook.say("message", severity="info", source="device-memory", text=f"{place}: {said}" if place else said)
    return True


def line_that_raised(raised: BaseException) -> str:
    """The innermost of the user's: "train.py:40"."""
    found, at = "", raised.__traceback__
    while at is not None:
        name = at.tb_frame.f_code.co_filename
        if is_user_file(name):
            found = f"{os.path.basename(known_as(name))}:{at.tb_lineno}"
        at = at.tb_next
    return found


def is_raised_in(raised: BaseException, module: str) -> bool:
    at = raised.__traceback__
    while at is not None and at.tb_next is not None:
        at = at.tb_next
    return at is not None and at.tb_frame.f_globals.get("__name__") == module


def cost_of_an_event() -> int:
    """What entering and leaving a phase and recording it takes here, in ns: measured on a scratch ring."""
    ours, (hook.record, _) = hook.record, channel.make_writer(-1, channel.HEADER_BYTES + channel.RECORD_BYTES, 1)
    begin = clock()
    for _ in range(CALIBRATION_ROUNDS):
        span = enter(channel.OTHER)
        if span is not None:
            leave(span, channel.OTHER)
    taken = clock() - begin
    hook.record = ours
    return taken // CALIBRATION_ROUNDS
