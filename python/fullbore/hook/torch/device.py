"""CUDA: copies to the device, blocking host calls, device time and the state of the allocator.

Nothing here starts CUDA or waits for it: it begins when the script itself has initialised CUDA, reads events only once
they are done, and stays away from streams that are being captured. On a machine without CUDA nothing is patched.
"""

from __future__ import annotations

import collections
import functools
import sys
from typing import Any

from ..core import channel, steps
from ..core.runtime import Span, Thread, enter, guarded, hook, leave
from ..core.where import say_where
from . import memory
from .compiling import is_compiling_test

MEMORY_PERIOD_NS = 1_000_000_000  # torch.cuda.memory_stats takes about 0.1 ms
MAX_PENDING_EVENTS = 64  # steps that the device may lag behind; beyond that, no new events are recorded


class Device:
    """What follows each step once CUDA is in use."""

    def __init__(self, torch: Any) -> None:
        self.torch = torch
        self.attached = False
        self.marks: collections.deque[tuple[Any, int]] = collections.deque()  # (event, host time), oldest first
        self.memory_due_ns = 0

    def look(self, optimizer: Any, thread: Thread, end: int) -> None:
        """Now and then: a torch that is built for CUDA, which is what most have, may train on the CPU all the same."""
        if self.attached or not self.torch.cuda.is_initialized():
            return
        self.attached = True
        attach_tensor(self.torch.Tensor)
        attach_synchronisation(self.torch.cuda)
        memory.follow()
        steps.after_step.append(self.after_step)
        self.after_step(optimizer, thread, end)

    def after_step(self, optimizer: Any, thread: Thread, end: int) -> None:
        if self.torch.cuda.is_current_stream_capturing():
            return
        self.mark(thread, end)
        if end >= self.memory_due_ns or memory.memory.wants_reading():
            self.memory_due_ns = end + MEMORY_PERIOD_NS
            self.read_memory(thread, end)

    def mark(self, thread: Thread, now: int) -> None:
        """Records an event on the stream, and reads the device time between events that have completed."""
        marks = self.marks
        while len(marks) > 1 and marks[1][0].query():
            (first, begin), (second, end) = marks.popleft(), marks[0]
            device_ns = int(first.elapsed_time(second) * 1e6)
            hook.record(channel.DEVICE_TIME, 0, thread.number, begin, end, device_ns)
        if len(marks) < MAX_PENDING_EVENTS:
            event = self.torch.cuda.Event(enable_timing=True)
            event.record()
            marks.append((event, now))

    def read_memory(self, thread: Thread, now: int) -> None:
        stats = self.torch.cuda.memory_stats()
        figures = ("allocated_bytes.all.current", "reserved_bytes.all.current", "allocated_bytes.all.peak")
        values = [int(stats.get(name, 0)) for name in (*figures, "num_alloc_retries")]
        hook.record(channel.MEMORY, 0, thread.number, now, now, *values)
        memory.memory.note(stats, self.torch.device("cuda", self.torch.cuda.current_device()))


def attach_tensor(Tensor: Any) -> None:
    """Copies between host and device, and reading a value back."""
    for name in ("to", "cuda", "cpu"):
        setattr(Tensor, name, timed_copy(getattr(Tensor, name)))
    for name in ("item", "tolist"):
        setattr(Tensor, name, timed_reading(getattr(Tensor, name)))


def timed_copy(original: Any) -> Any:
    """Tensor.to and similar methods: recorded only if the result is on another kind of device."""
    is_compiling = is_compiling_test()

    @functools.wraps(original)
    def copy(self: Any, *args: Any, **kwargs: Any) -> Any:
        span = None if is_compiling() else enter(channel.H2D)
        if span is None or span[0].in_forward:  # a model's casts are operators like others
            if span is not None:
                span[0].phase = span[1]
            return original(self, *args, **kwargs)
        thread, outer, _ = span
        try:
            result = original(self, *args, **kwargs)
        finally:
            thread.phase = outer
        if result is not self:
            note_copy(self, result, span)
        return result

    return copy


@guarded
def note_copy(source: Any, result: Any, span: Span) -> None:
    origin, goal = source.device.type, result.device.type
    if origin == goal:
        return
    if origin == "cpu":
        size = result.numel() * result.element_size()
        leave(span, channel.H2D, a=size, b=1 if source.is_pinned() else 0)
        say_where("h2d")
    elif goal == "cpu":  # the host waits for the value
        leave(span, channel.SYNC)


def timed_reading(original: Any) -> Any:
    """Tensor.item: for a device tensor the host waits for everything queued before."""
    is_compiling = is_compiling_test()

    @functools.wraps(original)
    def reading(self: Any, *args: Any, **kwargs: Any) -> Any:
        if is_compiling() or not self.is_cuda:
            return original(self, *args, **kwargs)
        return timed_call(original, (self, *args), kwargs)

    return reading


def attach_synchronisation(cuda: Any) -> None:
    for owner, name in ((cuda, "synchronize"), (cuda.Event, "synchronize"), (cuda.Stream, "synchronize")):
        setattr(owner, name, timed_synchronisation(getattr(owner, name)))


def timed_synchronisation(original: Any) -> Any:
    @functools.wraps(original)
    def synchronize(*args: Any, **kwargs: Any) -> Any:
        return timed_call(original, args, kwargs)

    return synchronize


def timed_call(original: Any, args: Any, kwargs: Any) -> Any:
    span = enter(channel.SYNC)
    if span is None:
        return original(*args, **kwargs)
    try:
        return original(*args, **kwargs)
    finally:
        leave(span, channel.SYNC)


def attach(cuda: Any) -> None:
    """Starts only if this torch was built with CUDA."""
    torch = sys.modules["torch"]
    if getattr(torch.version, "cuda", None) or getattr(torch.version, "hip", None):
        steps.now_and_then.append(Device(torch).look)
        memory.attach()
