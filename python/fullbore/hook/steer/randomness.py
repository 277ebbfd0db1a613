"""Whether loading in another number of workers gives the same batches, bit for bit.

A worker's random numbers come from a seed and its number, and those drawn inline from the training's own generators.
So the samples are the same in any number of workers only if making them draws none, and depends on nothing but the
index. That is tried in a forked child, where it leaves no trace.
"""

from __future__ import annotations

import os
import random
import sys
import time
from typing import Any, Callable

from ..core.runtime import hook

DRAWS = "making a sample draws random numbers, which depend on the number of workers"
ANSWERS = {
    1: DRAWS,
    2: "a sample is another when it is made again",
    3: "a sample made in a worker is another than in the training process",
}
FAILED = 4
MOST_S = 10.0  # for the child


def state() -> tuple[Any, ...]:
    """Of the generators that a dataset may draw from."""
    numpy = sys.modules.get("numpy")
    drawn = numpy.random.get_state() if numpy is not None else ("", b"", 0)
    return (
        sys.modules["torch"].get_rng_state().numpy().tobytes(),
        hash(random.getstate()),
        bytes(drawn[1]),
        drawn[2],
    )


def same(one: Any, other: Any) -> bool:
    """Bit for bit, for what batches consist of; what we do not know is not the same."""
    torch = sys.modules["torch"]
    if type(one) is not type(other):
        return False
    if isinstance(one, torch.Tensor):
        return one.dtype == other.dtype and one.shape == other.shape and torch.equal(bits(one), bits(other))
    if isinstance(one, dict) or hasattr(one, "keys"):
        return list(one.keys()) == list(other.keys()) and all(same(one[key], other[key]) for key in one.keys())
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    if hasattr(one, "tobytes"):
        return one.tobytes() == other.tobytes()
    return isinstance(one, (int, float, str, bytes, bool, type(None))) and one == other


def bits(tensor: Any) -> Any:
    return tensor.contiguous().view(sys.modules["torch"].uint8) if tensor.dim() and tensor.numel() else tensor


Worker = Callable[[], Callable[[], Any]]  # begins as a worker does; what it returns makes a batch


def reason_against(first: Worker, last: Worker, given: Any) -> str:
    """Makes a batch in a child, as two workers would; `given` is that batch as the training got it, None if that was
    made in a worker. Returns why other workers may not be tried, "" if they may."""
    child = os.fork()
    if child == 0:
        code = FAILED
        try:
            hook.on = False
            silence()
            code = compare(first, last, given)
        finally:
            os._exit(code)
    until = time.monotonic() + MOST_S
    while time.monotonic() < until:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            code = os.waitstatus_to_exitcode(status)
            return "" if code == 0 else ANSWERS.get(code, "its samples could not be made in another process")
        time.sleep(0.001)
    os.kill(child, 9)
    os.waitpid(child, 0)
    return f"making a batch twice took longer than {MOST_S:g} s"


def silence() -> None:
    """What a script prints where it makes samples, it prints once."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)


def compare(first: Worker, last: Worker, given: Any) -> int:
    sys.modules["torch"].set_num_threads(1)  # as in a worker; the threads of the parent are not in this process
    made = []
    for worker in (first, last):
        make = worker()
        before = state()
        made.append(make())
        if state() != before:
            return 1
    one, other = made
    if not same(one, other):
        return 2
    return 0 if given is None or same(one, given) else 3
