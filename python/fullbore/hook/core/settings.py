"""Settings that somebody asked for in place of the script's own: $FULLBORE_SETTINGS, a JSON object (docs/settings.md).

What became of each is the fact `setting.NAME`: "applied", or "refused: " and why. A setting that meets nothing in the
script to which it could apply has no such fact. A variable that cannot be read steers nothing, which one message says.
"""

from __future__ import annotations

import functools
import json
import os
from typing import Any, Callable

from .interrupts import is_the_scripts
from .runtime import guarded, hook, is_helper_process

VARIABLE = "FULLBORE_SETTINGS"
APPLIED = "applied"
PREFIX = "setting."

# What a setting takes, in words, where the value given is nothing of that kind; else empty. The same values as in
# src/tune/knob/knob.cc, which judges what `fullbore` is given.
Misfit = Callable[[Any], str]
MOST_WORKERS, MOST_THREADS, MOST_BATCHES, MOST_SAMPLES, MOST_MEGABYTES, MOST_CPU = 1024, 1024, 1024, 10**8, 10**6, 8191


def whole(least: int, most: int) -> Misfit:
    def misfit(value: Any) -> str:
        if type(value) is not int or value < least:
            return f"a whole number of at least {least}"
        return "" if value <= most else f"at most {most}"

    return misfit


def one_of(*words: str) -> Misfit:
    return lambda value: "" if value in words else " or ".join(words)


def cpus(text: Any) -> set[int]:
    """The numbers in a list of CPUs as the kernel writes it, "0-3,8", or a single number. Raises ValueError."""
    found: set[int] = set()
    for part in str(text).split(","):
        first, dash, last = part.partition("-")
        if not (part.isascii() and first.isdigit() and (last.isdigit() or not dash)):
            raise ValueError(f"{part!r} is no CPU")
        begin, end = int(first), int(last or first)
        if not begin <= end <= MOST_CPU:
            raise ValueError(f"{part!r} is no range of CPUs")
        found.update(range(begin, end + 1))
    return found


def list_of_cpus(value: Any) -> str:
    try:
        return "" if type(value) in (int, str) and cpus(value) else CPUS
    except ValueError as error:
        if is_the_scripts(error):
            raise
        return CPUS


def switch(value: Any) -> str:
    return "" if type(value) is bool else "true or false"


def megabytes(value: Any) -> str:
    if type(value) not in (int, float) or not value > 0:
        return "a number above 0"
    return "" if value <= MOST_MEGABYTES else f"at most {MOST_MEGABYTES}"


CPUS = 'a list of CPUs such as "0-3,8"'
KNOWN: dict[str, Misfit] = {
    "num_workers": whole(0, MOST_WORKERS),
    "prefetch_factor": whole(1, MOST_BATCHES),
    "persistent_workers": switch,
    "pin_memory": switch,
    "batch_size": whole(1, MOST_SAMPLES),
    "accumulate": whole(1, MOST_SAMPLES),
    "precision": one_of("fp32", "bf16", "fp16"),
    "tf32": switch,
    "channels_last": switch,
    "cudnn_benchmark": switch,
    "optimizer": one_of("fused", "foreach"),
    "compile": switch,
    "intraop_threads": whole(1, MOST_THREADS),
    "cpu_affinity": list_of_cpus,
    "fast_data": switch,
    "bucket_cap_mb": megabytes,
    "static_graph": switch,
}
OF_THE_PROCESS = ("intraop_threads", "cpu_affinity", "tf32", "cudnn_benchmark")  # a forked child has them, too


class Settings:
    """What was asked for, and what became of it."""

    def __init__(self, text: str) -> None:
        self.asked = bool(text)
        self.wanted: dict[str, Any] = {}
        hook.facts_of_a_child.update(PREFIX + name for name in OF_THE_PROCESS)
        try:
            given = json.loads(text or "{}")
            if not isinstance(given, dict):
                raise ValueError("it is no object")
        except ValueError as error:
            if is_the_scripts(error):
                raise
            self.asked = False
            if not is_helper_process():
                hook.open()
                hook.say(
                    "message",
                    severity="warning",
                    source=VARIABLE,
                    text=f"cannot be read as a JSON object ({error}); the run goes on with the script's own settings",
                )
            return
        for name, value in given.items():
            self.take(name, value)

    def take(self, name: str, value: Any) -> None:
        if name not in KNOWN:
            self.refused(name, "there is no such setting")
            return
        what = KNOWN[name](value)
        if what:
            self.refused(name, f"it takes {what}, not {json.dumps(value)}")
            return
        self.wanted[name] = value

    def get(self, name: str) -> Any:
        """The value asked for, None if the script is to keep its own."""
        return self.wanted.get(name)

    def applied(self, name: str) -> None:
        hook.fact(PREFIX + name, APPLIED)

    def refused(self, name: str, reason: str) -> None:
        hook.fact(PREFIX + name, f"refused: {reason}")

    def say(self, outcomes: dict[str, str]) -> None:
        """States several outcomes; "" is applied, else the reason for which it was refused."""
        for name, reason in outcomes.items():
            self.refused(name, reason) if reason else self.applied(name)


settings = Settings(os.environ.get(VARIABLE, ""))


@guarded
def refuse(names: tuple[str, ...], reason: str) -> None:
    for name in names:
        if settings.get(name) is not None:
            settings.refused(name, reason)


def attempted(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """For functions that apply settings: one of which we do not know how to apply it to this version of a library is
    refused with the error, and the hook stays on."""

    def around(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def safe(*args: Any, **kwargs: Any) -> Any:
            try:
                return function(*args, **kwargs)
            except Exception as error:
                if is_the_scripts(error):
                    raise
                refuse(names, f"{type(error).__name__}: {error}")
                return None

        return safe

    return around
