"""Runs a map function that holds the interpreter lock in separate processes; rows travel through pipes.

A process that dies is restarted and its row tried once more; after that the row is a bad sample. The processes end
with the pool, or when the process that owns it dies.
"""

from __future__ import annotations

import multiprocessing
import os
import queue
import signal
import threading
import time
from typing import Any

from .sample import Function, as_views, changed, describe, store

MAX_RESTARTS = 3  # over all processes: a function that kills its process will do so again
PARENT_CHECK_S = 1.0


class Worker:
    """One process and our end of its pipe. Used by one thread at a time."""

    def __init__(self, function: Function) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=work, args=(theirs, function), daemon=True, name="fullbore-map")
        try:
            self.process.start()
        finally:
            theirs.close()  # so that the pipe closes when the process dies
        # The pool ends it. multiprocessing would also end every process it knows when a fork of this process exits.
        getattr(multiprocessing.process, "_children", set()).discard(self.process)

    def ask(self, question: Any) -> Any:
        self.pipe.send(question)
        return self.pipe.recv()

    def end(self) -> str:
        self.process.kill()
        self.process.join()
        self.pipe.close()
        code = self.process.exitcode or 0
        return f"killed by signal {-code}" if code < 0 else f"ended with status {code}"


class Pool:
    def __init__(self, function: Function, processes: int) -> None:
        self._function = function
        self._pid = os.getpid()
        # Protects what follows. Reentrant, and the queue is one whose put may interrupt its get, because the garbage
        # collector may run while we hold it and collect the loader, which closes this pool.
        self._lock = threading.RLock()
        self._closed = ""  # why there is no process left to ask
        self._restarts = 0
        self._workers: list[Worker] = []
        self._idle: queue.SimpleQueue[Worker | None] = queue.SimpleQueue()
        self.messages: list[str] = []
        for _ in range(processes):
            self._start()

    def stage(self, fields: list, ident: int, epoch: int, seed: int) -> str | None:
        """The same as the stage that stage.in_threads makes for the engine; called by many threads."""
        try:
            views = as_views(fields)
            question = (views, ident, epoch, seed)
            problem = "map: its process ended"
            for _ in range(2):
                worker = self._idle.get()
                if worker is None:  # closed: pass it on to the next thread that waits
                    self._idle.put(None)
                    return self._closed
                try:
                    bad, values = worker.ask(question)
                except (EOFError, OSError):
                    problem = f"map: its process was {worker.end()}"
                    self._replace(worker, problem)
                    continue
                self._idle.put(worker)
                if bad is None:
                    store(views, values)
                return bad
            return problem
        except BaseException as error:
            return describe(error)

    def close(self) -> None:
        """Ends the processes, busy or not, so that a function that hangs delays nobody."""
        if os.getpid() != self._pid:
            return
        with self._lock:
            self._closed = "map: the loader is closed"
            workers, self._workers = self._workers, []
        for worker in workers:
            worker.process.kill()
        self._idle.put(None)
        for worker in workers:
            worker.process.join()

    def pids(self) -> list[int]:
        with self._lock:
            return [worker.process.pid or 0 for worker in self._workers]

    def _start(self) -> None:
        worker = Worker(self._function)
        with self._lock:
            if not self._closed:
                self._workers.append(worker)
                self._idle.put(worker)
                return
        worker.end()

    def _replace(self, worker: Worker, problem: str) -> None:
        with self._lock:
            if self._closed:
                return
            self._workers.remove(worker)
            self._restarts += 1
            if self._restarts <= MAX_RESTARTS:
                self.messages.append(f"{problem}; restarted ({self._restarts} of {MAX_RESTARTS})")
                self._start()
            elif not self._workers:
                self._closed = f"{problem}, after {MAX_RESTARTS} restarts"
                self.messages.append(f"{problem}; none is left, so no more samples can be mapped")
                self._idle.put(None)


def end_with_parent(parent: int) -> None:
    """Watches its pid: another process forked by it may hold its end of our pipe open."""
    while os.getppid() == parent:
        time.sleep(PARENT_CHECK_S)
    os._exit(1)


def work(pipe: Any, function: Function) -> None:
    """The process's loop."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C
    # In a thread, so that it works in the middle of a call, too. Not os.getppid(): the parent may be gone by now.
    parent = multiprocessing.parent_process().pid
    threading.Thread(target=end_with_parent, args=(parent,), daemon=True).start()
    while True:
        try:
            views, ident, epoch, seed = pipe.recv()
        except EOFError:
            return
        try:
            values = changed(function, views, ident, epoch, seed)
            arrays = {name: value for name, value in views.items() if not isinstance(value, (str, bytes))}
            answer = (None, {**arrays, **values})  # the function may have changed any of them in place
        except BaseException as error:
            answer = (describe(error), None)
        pipe.send(answer)
