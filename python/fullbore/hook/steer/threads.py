"""Threads and CPUs of the training process."""

from __future__ import annotations

import functools
import os
import sys
from typing import Any

from ..core.interrupts import is_the_scripts
from ..core.settings import cpus, settings


def attach(torch: Any) -> None:
    pin_to_cpus()
    threads = settings.get("intraop_threads")
    if threads is not None:
        hold_threads(torch, threads)
        settings.applied("intraop_threads")


def pin_to_cpus() -> None:
    wanted = settings.get("cpu_affinity")
    if wanted is None:
        return
    try:
        # Every thread: importing NumPy has started those of its BLAS already.
        for thread in os.listdir("/proc/self/task"):
            try:
                os.sched_setaffinity(int(thread), cpus(wanted))
            except ProcessLookupError as error:
                if is_the_scripts(error):
                    raise
    except OSError as error:
        if is_the_scripts(error):
            raise
        allowed = ",".join(map(str, sorted(os.sched_getaffinity(0))))
        settings.refused("cpu_affinity", f"{error.strerror} for {wanted}: this process may use {allowed}")
    else:
        settings.applied("cpu_affinity")


def hold_threads(torch: Any, threads: int) -> None:
    """Sets the number of threads; only torch's own loader workers, which use one thread, can still change it."""
    original = torch.set_num_threads
    original(threads)

    @functools.wraps(original)
    def set_num_threads(number: int) -> None:
        if sys._getframe(1).f_globals.get("__name__", "").startswith("torch."):
            original(number)

    torch.set_num_threads = set_num_threads
