"""What all parts of the hook share: the process's channel, its threads, and what happens when the hook fails.

One process, one `hook` object. In a process that was started to help another (a multiprocessing child, a compile
worker), and in every forked child, the channel is opened only when the process acts: a loader worker by fetching, a
trainer by taking a batch or a step. Until then, and after a failure, `record` drops what it is given.
"""

from __future__ import annotations

import _thread
import atexit
import functools
import os
import sys
import time
from typing import Any, Callable, TypeVar

from . import channel, native
from .files import Kept
from .interrupts import is_the_scripts

clock = time.monotonic_ns
get_ident = _thread.get_ident


class PythonThread:
    """What one thread is doing. Read by the line sampler, written by the thread itself."""

    __slots__ = (
        "number",
        "phase",
        "in_next",
        "in_fetch",
        "in_forward",
        "loader",
        "fed_by",
        "open_steps",
        "schedstat",
    )

    def __init__(self, number: int) -> None:
        self.number = number
        self.phase = 0  # EventKind it is inside
        self.in_next = self.in_fetch = self.in_forward = False
        self.loader = 0  # id of the loader it asked last
        self.fed_by: Any = None  # Loader of the last batch it took
        # Steps under way: (id of the optimizer, begin, outer phase). One that raised stays, and must not keep it alive.
        self.open_steps: list[Any] = []
        self.schedstat: Kept | None = None

    def close_files(self) -> None:
        kept, self.schedstat = self.schedstat, None
        if kept is not None:
            kept.close()


class PythonState:
    """What the hot path reads of the hook. Plain attributes here, fields of a struct in the extension's State."""


State: Any = PythonState if native.extension is None else native.extension.State
Thread: Any = PythonThread if native.extension is None else native.extension.Thread


def drop(*_: int) -> None:
    """Replaces `record` if there is no channel."""


class Hook(State):
    is_the_scripts = staticmethod(is_the_scripts)  # for the extension

    def __init__(self) -> None:
        self.on = True
        self.failed = False  # and is off for good
        self.record: channel.Record = drop
        self.channel: channel.Channel | None = None
        self.threads: dict[int, Thread] = {}
        self.facts: dict[str, Any] = {"hook_path": native.PATH}
        self.said: set = set()  # keys of what was reported once
        self.steps = 0
        self.extra_ns = 0  # time spent in the hook beside the records: the line sampler's
        self.is_worker = False
        self.garbage_ns = 0  # spent in garbage collections
        # What makes a step a usual one, which needs no more than a record: see steps.py.
        self.usual_optimizer = 0
        self.usual_thread: Any = None
        self.usual_loader: Any = None
        self.usual_until = 0
        self.times_cores = "FULLBORE_TURNS" in os.environ  # of the extension, at each step: a read of /proc
        self.is_grad_enabled: Callable[[], bool] = bool  # of the framework
        self.about_pass: Callable[[Any], int] = lambda module: 0  # what is known of a call that does not train it
        self.runs = 0  # that a part of this process was, before this one: see begin_run
        self.ended_by: BaseException | None = None  # the run that ends now
        self.ends: list[Callable[[], None]] = []  # see at_end
        self.forget_in_child: list[Callable[[], None]] = []  # run in a forked child, and where another run begins
        self.in_child: list[Callable[[], None]] = []  # run in a forked child alone
        self.at_new_run: list[Callable[[], None]] = []  # and these where another run begins
        self.beside: list[Callable[[], None]] = []  # run by the line sampler's thread, after each of its samples
        self.worker_begins: list[Callable[[int], None]] = []  # run in a loader's worker, with the loader's id
        self.facts_of_a_child: set[str] = {"hook_path"}  # what a forked child may repeat of its parent's
        # The number of the loader worker that this process is, -1 if it is none: what starts workers knows.
        self.worker_number: Callable[[], int] = lambda: -1
        self.directory = os.environ.get("FULLBORE_CHANNEL", "")
        self.waiting: list[tuple[int, BaseException]] = []  # by thread: see raise_later
        self._opening = _thread.RLock()
        self._opened: channel.Channel | None = None  # but not introduced yet
        self._failed_to_open = False

    def here(self) -> Thread:
        """The calling thread."""
        ident = get_ident()
        thread = self.threads.get(ident)
        if thread is None:
            thread = self.threads[ident] = Thread(len(self.threads))
        return thread

    def open(self) -> None:
        """Opens the channel if it is not open yet. A process that cannot create one goes without."""
        if self.channel is not None or self._failed_to_open or not self.on:
            return
        # A function of the script for a signal may raise between any two lines, in a `with` also before it holds what
        # it got: the lock is this thread's, which gives it up next time if not now, and nobody waits for it for long.
        try:
            if self._opening.acquire(timeout=1):
                self._open()
        finally:
            while self._opening._is_owned():
                self._opening.release()

    def _open(self) -> None:
        if self.channel is not None or self._failed_to_open:
            return
        if self._opened is None:  # else the script's own exception came between
            worker_id = self.worker_number()
            role = channel.TRAINER if worker_id < 0 else channel.WORKER
            try:
                self._opened = channel.Channel(self.directory, role, parent_pid(), worker_id)
            except (OSError, ValueError) as error:
                if is_the_scripts(error):
                    raise
                self._failed_to_open = True
                return
        opened = self._opened
        self.is_worker = opened.role == channel.WORKER
        opened.say("hello", **introduction(opened.role))
        for key, value in tuple(self.facts.items()):
            opened.say("fact", key=key, value=value)
        self.record = self.deliver if self.waiting else opened.ring.record
        self.channel, self._opened = opened, None

    def say(self, kind: str, **members: Any) -> None:
        if self.channel is not None:
            self.channel.say(kind, **members)

    def fact(self, key: str, value: Any) -> None:
        """States a fact when it is new or has changed."""
        if value is None or self.facts.get(key) == value:
            return
        self.facts[key] = value
        self.say("fact", key=key, value=value)

    def fail(self, where: str, error: BaseException) -> bool:
        """Switches the hook off for good and reports it once. The script goes on.

        False, and nothing is done, where the exception is none of ours: whoever caught it raises it again.
        """
        if is_the_scripts(error):
            return False
        if not self.on:
            return True
        try:
            self.open()
        except Exception as another:  # perhaps that is what failed
            if is_the_scripts(another):
                raise
        self.on, self.failed = False, True
        self.record = drop
        try:
            traceback = error.__traceback__
            while traceback is not None and traceback.tb_next is not None:
                traceback = traceback.tb_next
            place = "" if traceback is None else f" ({traceback.tb_frame.f_code.co_filename}:{traceback.tb_lineno})"
            text = f"the hook switched itself off in {where}: {type(error).__name__}: {error}{place}"
            self.say("message", severity="error", text=text + "; the training goes on without it")
        except Exception as another:  # nothing left to try
            if is_the_scripts(another):
                raise
        return True

    def raise_later(self, error: BaseException) -> None:
        """One of the script's that came up where Python would print it and go on: this thread's next record raises it,
        which is in a call that the script makes."""
        self.waiting.append((get_ident(), error))
        self.record = self.deliver

    def deliver(self, *values: int) -> None:
        """Stands in for `record` while an exception waits."""
        if self.channel is not None:
            self.channel.ring.record(*values)
        if self.waiting and self.waiting[0][0] == get_ident():
            if len(self.waiting) == 1:
                self.record = drop if self.channel is None else self.channel.ring.record
            raise self.waiting.pop(0)[1]

    def after_fork(self) -> None:
        """In a forked child: the parent's channel must not be written to."""
        try:
            self.start_over()
            for forget in self.in_child:
                forget()
        except Exception as error:
            if not self.fail("fork", error):
                raise

    def start_over(self) -> None:
        """What was recorded until now is another's."""
        self.record = drop
        inherited, self.channel, self._opened = self.channel or self._opened, None, None
        if inherited is not None:
            inherited.close()
        for thread in self.threads.values():
            thread.close_files()
        self.threads = {}
        self.said = set()
        self.facts = {key: value for key, value in self.facts.items() if key in self.facts_of_a_child}
        self.steps = self.usual_until = 0
        self.is_worker = False
        for forget in self.forget_in_child:
            forget()
        self.extra_ns = 0
        self.waiting = []
        self._opening = _thread.RLock()
        self._failed_to_open = False

    def at_end(self, call: Callable[[], None]) -> None:
        """Of the process, or of a run that is a part of it. What was asked for last is called first."""
        if call not in self.ends:
            self.ends.append(call)
            atexit.register(call)

    def begin_run(self, directory: str) -> None:
        """A part of this process is a run of its own (late.py), into this channel."""
        self.start_over()
        self.runs += 1
        self.directory = directory
        self.on = True
        for begin in self.at_new_run:
            begin()

    def end_run(self, error: BaseException | None = None) -> None:
        self.ended_by = error
        try:
            for call in reversed(self.ends):
                call()
        finally:
            self.on = False
            self.ended_by = None
            self.start_over()


hook = Hook()
Span = tuple[Any, int, int]  # thread, outer phase, begin


def enter(kind: int) -> Span | None:
    """Begins a phase of the calling thread; None where the hook is off. Never raises."""
    if not hook.on or hook.is_worker:
        return None
    try:
        thread = hook.threads.get(get_ident()) or hook.here()
        outer, thread.phase = thread.phase, kind
        return thread, outer, clock()
    except Exception as error:
        if not hook.fail("entering a phase", error):
            raise
        return None


def leave(span: Span, kind: int, ident: int = 0, a: int = 0, b: int = 0) -> None:
    """Ends and records it. Never raises."""
    end = clock()
    thread, outer, begin = span
    thread.phase = outer
    try:
        hook.record(kind, ident, thread.number, begin, end, a, b)
    except Exception as error:
        if not hook.fail("leaving a phase", error):
            raise


if native.extension is not None:
    enter, leave = hook.enter, hook.leave


def timed_phase(original: Any, kind: int, is_tracing: Callable[[], bool]) -> Any:
    """A function that is a phase of its own, called where `is_tracing` says no."""
    if native.extension is not None:
        run = hook.run

        @functools.wraps(original)
        def timed(*args: Any, **kwargs: Any) -> Any:
            return original(*args, **kwargs) if is_tracing() else run(kind, original, args, kwargs)

        return timed

    @functools.wraps(original)
    def timed_in_python(*args: Any, **kwargs: Any) -> Any:
        span = None if is_tracing() else enter(kind)
        if span is None:
            return original(*args, **kwargs)
        try:
            return original(*args, **kwargs)
        finally:
            leave(span, kind)

    return timed_in_python


Function = TypeVar("Function", bound=Callable[..., Any])


def guarded(function: Function) -> Function:
    """For functions called rarely: an exception switches the hook off. Hot paths have their own try."""

    @functools.wraps(function)
    def safe(*args: Any, **kwargs: Any) -> Any:
        if not hook.on:
            return None
        try:
            return function(*args, **kwargs)
        except Exception as error:
            if not hook.fail(function.__name__, error):
                raise
            return None

    return safe  # type: ignore[return-value]


def never_interrupted(callback: Function) -> Function:
    """For what Python calls by itself (at a fork, at a garbage collection) and whose exceptions it prints and drops."""

    @functools.wraps(callback)
    def safe(*args: Any) -> None:
        try:
            callback(*args)
        except BaseException as error:
            if not hook.fail(callback.__name__, error):
                hook.raise_later(error)

    return safe  # type: ignore[return-value]


os.register_at_fork(after_in_child=never_interrupted(hook.after_fork))


def parent_pid() -> int:
    """The process that asked for this one: with a fork server that is not the parent the kernel knows."""
    process = sys.modules.get("multiprocessing.process")
    parent = process.parent_process() if process is not None else None
    return os.getppid() if parent is None or parent.pid is None else parent.pid


def is_helper_process() -> bool:
    """Whether this process was started by a library to help another one, rather than by a command."""
    process = sys.modules.get("multiprocessing.process")
    if process is not None:
        if process.parent_process() is not None or getattr(process.current_process(), "_inheriting", False):
            return True
    command = " ".join(getattr(sys, "orig_argv", None) or sys.argv)
    marks = ("--multiprocessing-fork", "multiprocessing.forkserver", "multiprocessing.resource_tracker")
    return any(mark in command for mark in (*marks, "torch/_inductor/compile_worker"))


def introduction(role: int) -> dict[str, Any]:
    return {
        "pid": os.getpid(),
        "ppid": parent_pid(),
        "role": "worker" if role == channel.WORKER else "trainer",
        "rank": channel.rank(),
        "local_rank": channel.env_int("LOCAL_RANK", -1),
        "world_size": channel.env_int("WORLD_SIZE", 1),
        "python": ".".join(map(str, sys.version_info[:3])),
    }
