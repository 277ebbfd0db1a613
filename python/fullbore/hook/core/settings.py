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

Test = Callable[[Any], bool]


def whole(least: int) -> tuple[Test, str]:
    return lambda value: type(value) is int and value >= least, f"a whole number of at least {least}"


def one_of(*words: str) -> tuple[Test, str]:
    return lambda value: value in words, " or ".join(words)


def cpus(text: str) -> set[int]:
    """The numbers in a list of CPUs as the kernel writes it: "0-3,8". Raises ValueError."""
    found: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return found


def is_cpus(value: Any) -> bool:
    try:
        return bool(cpus(value))
    except (AttributeError, TypeError, ValueError) as error:
        if is_the_scripts(error):
            raise
        return False


SWITCH = (lambda value: type(value) is bool, "true or false")
NUMBER = (lambda value: type(value) in (int, float) and value > 0, "a number above 0")
KNOWN: dict[str, tuple[Test, str]] = {
    "num_workers": whole(0),
    "prefetch_factor": whole(1),
    "persistent_workers": SWITCH,
    "pin_memory": SWITCH,
    "batch_size": whole(1),
    "accumulate": whole(1),
    "precision": one_of("fp32", "bf16", "fp16"),
    "tf32": SWITCH,
    "channels_last": SWITCH,
    "cudnn_benchmark": SWITCH,
    "optimizer": one_of("fused", "foreach"),
    "compile": SWITCH,
    "intraop_threads": whole(1),
    "cpu_affinity": (is_cpus, 'a list of CPUs such as "0-3,8"'),
    "fast_data": SWITCH,
    "bucket_cap_mb": NUMBER,
    "static_graph": SWITCH,
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
        is_fitting, what = KNOWN[name]
        if not is_fitting(value):
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
