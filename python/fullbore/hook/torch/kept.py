"""What an evaluation keeps of the model's outputs: all of them until it is over, though a metric needs less.

Two things tell it. The outputs that were looked at are alive passes later, each in memory of its own: the script holds
them as they are. Or it holds copies of them, on the host or put together into one: then memory grows from pass to pass
by as much as the outputs are large, and on the host does so again in another evaluation, as a cache or an allocator's
pool that fills does not.

Looked at are the 2nd to 6th pass, the 8th, 10th, 13th, ...: of a thousand passes 23. Of the script's, nothing is kept:
of an output's memory a weak reference.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from statistics import mean
from typing import Any, NamedTuple

from ..core import steps
from ..core.frames import MAX_DEPTH
from ..core.interrupts import is_the_scripts
from ..core.library import standard_library
from ..core.runtime import Thread, clock, guarded, hook
from ..core.where import say_where
from . import forward, held, tokens

FIRST_LOOK, RARER = 2, 3  # then a third of the passes so far from look to look, one at least
LEAST_HELD = 16 << 20  # worth a word
LARGER = 1.05  # than the most so far: said again
LEAST_ALIVE = 4  # of the outputs that were looked at
LEAST_READINGS = 5
# Memory against outputs: of several tensors one may be kept, and 16 bits may become 32.
LEAST_GROWN, MOST_GROWN = 0.6, 2.5
SLOW_NS = 1_000_000  # a reading takes 1 us; among many thousands of freed pieces more, and then it was the last one
EVALUATIONS = 2  # in which the host's memory has to grow
# The function that evaluates in a library's loop: its name, the end of its file's, and the library.
LOOPS = (("evaluation_loop", os.path.join("transformers", "trainer.py"), "transformers"),)


class Output(NamedTuple):
    """What a pass returned."""

    number: int  # of the pass
    largest: int  # bytes of its largest tensor
    all: int
    memory: Any  # that the largest lies in: a weak reference
    on_device: bool
    shape: list[int]
    dtype: str

    def is_alive(self) -> bool:
        return not self.memory.expired()


class Used(NamedTuple):
    """Memory in use, when so many passes were over."""

    passes: int
    host: int  # of the C library
    device: int  # in its tensors

    def bytes(self) -> int:
        return self.host + self.device


class Held(NamedTuple):
    """Of the outputs by an evaluation, for each pass."""

    of_pass: float
    on_device: float
    as_they_are: bool


class Evaluation:
    """What was seen of one."""

    def __init__(self) -> None:
        self.passes = 0
        self.outputs: list[Output] = []
        self.used: list[Used] = []
        self.by = ""
        self.held: Held | None = None

    def judge(self) -> None:
        self.held = self.alive() or grown(self.used[1:], self.outputs)  # the first pass makes room for itself, too

    def alive(self) -> Held | None:
        """Outputs as they are. The last one always is."""
        outputs = [each for each in self.outputs if each.number < self.passes - 1]
        kept = [each for each in outputs if each.is_alive()]
        if len(outputs) < LEAST_ALIVE or kept != outputs or len({each.memory for each in kept}) < len(kept):
            return None
        largest = mean(each.largest for each in kept)
        return Held(largest, largest if kept[-1].on_device else 0, True)

    def bytes(self) -> int:
        return 0 if self.held is None else round(self.held.of_pass * self.passes)


def grown(used: list[Used], outputs: list[Output]) -> Held | None:
    """Whether memory grew by the outputs in both halves of what was seen."""
    if len(used) < LEAST_READINGS or not outputs:
        return None
    least = LEAST_GROWN * mean(each.largest for each in outputs)
    most = MOST_GROWN * mean(each.all for each in outputs)
    first, last = used[0], used[-1]
    middle = min(used[1:-1], key=lambda each: abs(2 * each.passes - first.passes - last.passes))
    if not all(least <= slope(*each) <= most for each in ((first, middle), (middle, last))):
        return None
    of_device = (last.device - first.device) / (last.passes - first.passes)
    return Held(slope(first, last), max(0.0, of_device), False)


def slope(one: Used, other: Used) -> float:
    return (other.bytes() - one.bytes()) / (other.passes - one.passes)


class Kept:
    """Over all evaluations."""

    def __init__(self) -> None:
        # Passes of one module, in evaluation mode, between two steps.
        self.step, self.module = -1, 0
        self.passes, self.look_at = 0, FIRST_LOOK
        self.under_way: Evaluation | None = None  # from the first look on
        self.evaluations = 0  # that kept outputs
        self.most: Evaluation | None = None  # of these, what held most
        self.over = False
        self.in_use: InUse | None = None  # from the first look on

    def at_pass(self, module: Any, bits: int) -> None:
        """Before an outermost pass in evaluation mode."""
        if self.step != hook.steps:
            if self.over or bits & (held.OF_APART | held.OF_COPY) == held.OF_APART:
                return
            self.finish()
            self.step, self.module = hook.steps, id(module)
            self.passes, self.look_at = 0, FIRST_LOOK
        if self.module == id(module):
            self.passes += 1
            if self.passes >= self.look_at:
                self.ask(self.look)

    def look(self) -> None:
        begin = clock()
        self.look_at += max(1, self.look_at // RARER)
        evaluation = self.under_way = self.under_way or Evaluation()
        evaluation.passes = self.passes
        evaluation.used.append(Used(self.passes - 1, self.host_bytes(), device_bytes()))
        evaluation.by = evaluation.by or library_that_evaluates()
        say_where("evaluation")
        evaluation.judge()
        if self.is_most(evaluation):
            self.say(evaluation, self.evaluations + 1)
        if forward.forward is not None:
            forward.forward.look_at_next_result(self.look_at_result)
        hook.extra_ns += clock() - begin

    def host_bytes(self) -> int:
        if self.in_use is None:
            self.in_use = InUse()
            hook.at_end(at_end)  # not before: what is asked for later is called sooner, and the goodbye ends all
        return self.in_use.bytes()

    def look_at_result(self, module: Any, args: Any, kwargs: Any, result: Any) -> None:
        """Of the pass that is over."""
        evaluation = self.under_way
        if evaluation is None or self.module != id(module):
            return
        begin = clock()
        self.ask(lambda: note_output(evaluation, self.passes, (args, kwargs), result))
        hook.extra_ns += clock() - begin

    def finish(self) -> None:
        """The evaluation under way is over."""
        evaluation, self.under_way = self.under_way, None
        if evaluation is None:
            return
        evaluation.passes = self.passes
        if evaluation.bytes() < LEAST_HELD:
            return
        self.evaluations += 1
        is_most = self.is_most(evaluation)
        if is_most:
            self.most = evaluation
        if self.most is not None and (is_most or self.evaluations & (self.evaluations - 1) == 0):
            self.say(self.most, self.evaluations)

    def is_most(self, evaluation: Evaluation) -> bool:
        return self.most is None or evaluation.bytes() > LARGER * self.most.bytes()

    def say(self, evaluation: Evaluation, evaluations: int) -> None:
        """Unless it may be by chance, for once, that the host's memory grew."""
        of = evaluation.held
        if of is None or evaluation.bytes() < LEAST_HELD:
            return
        if not of.as_they_are and 2 * of.on_device <= of.of_pass and evaluations < EVALUATIONS:
            return
        last = evaluation.outputs[-1]
        hook.fact(
            "kept_outputs",
            {
                "evaluations": evaluations,
                "passes": evaluation.passes,
                "bytes": evaluation.bytes(),
                "on_device": round(of.on_device * evaluation.passes),
                "as_they_are": of.as_they_are,
                "shape": last.shape,
                "dtype": last.dtype,
                "by": evaluation.by,
            },
        )

    def ask(self, question: Any) -> None:
        """Outputs of strange kinds end the looks, and nothing else."""
        try:
            question()
        except Exception as error:
            if is_the_scripts(error):
                raise
            self.over, self.under_way, self.look_at = True, None, sys.maxsize


# ---- Outputs ----


def note_output(evaluation: Evaluation, number: int, given: Any, result: Any) -> None:
    tensors = list(own_tensors(result, given))
    largest = max(tensors, key=lambda each: each.nbytes, default=None)
    if largest is None:
        return
    memory = sys.modules["torch.multiprocessing.reductions"].StorageWeakRef(largest.untyped_storage())
    sizes = int(largest.nbytes), sum(int(each.nbytes) for each in tensors)
    about = [int(size) for size in largest.shape], str(largest.dtype).replace("torch.", "")
    evaluation.outputs.append(Output(number, *sizes, memory, largest.device.type != "cpu", *about))


def own_tensors(result: Any, given: Any) -> Iterator[Any]:
    """Without what the module was called with: the script may have that in memory anyway."""
    torch = sys.modules["torch"]
    seen = {each.untyped_storage()._cdata for each in plain_tensors(torch, given)}
    for each in plain_tensors(torch, result):
        storage = each.untyped_storage()._cdata
        if storage not in seen:
            seen.add(storage)
            yield each


def plain_tensors(torch: Any, value: Any) -> Iterator[Any]:
    found = (each for _, each in tokens.tensors_in(value))
    return (each for each in found if type(each) is torch.Tensor and each.layout is torch.strided)


# ---- Memory ----


class InUse:
    """What the C library has handed out and not got back: mallinfo(3), from glibc 2.33 on. The pages of a process tell
    less: a freed tensor often stays with it, and another one lies beside it."""

    FIELDS = "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split()

    def __init__(self) -> None:
        with standard_library:
            import ctypes

        self.ask = getattr(ctypes.CDLL(None), "mallinfo2", None)
        if self.ask is not None:
            fields = [(name, ctypes.c_size_t) for name in self.FIELDS]
            self.ask.restype = type("mallinfo2", (ctypes.Structure,), {"_fields_": fields})

    def bytes(self) -> int:
        if self.ask is None:
            return 0
        begin = time.thread_time_ns()  # without what other threads and programs take
        said = self.ask()
        if time.thread_time_ns() - begin > SLOW_NS:
            self.ask = None
        return int(said.uordblks + said.hblkhd)


def device_bytes() -> int:
    cuda = sys.modules["torch"].cuda
    return int(cuda.memory_allocated()) if cuda.is_initialized() else 0


def library_that_evaluates() -> str:
    frame: Any = sys._getframe(1)
    for _ in range(MAX_DEPTH):
        if frame is None:
            return ""
        for function, file, library in LOOPS:
            if frame.f_code.co_name == function and frame.f_code.co_filename.endswith(file):
                return library
        frame = frame.f_back
    return ""


kept = Kept()


def about_pass(module: Any) -> int:
    """What held.py knows of it. May raise."""
    bits = held.about_pass(module)
    if bits & held.IN_EVALUATION:
        kept.at_pass(module, bits)
    return bits


@guarded
def after_step(optimizer: Any, thread: Thread, end: int) -> None:
    kept.finish()


@guarded
def at_end() -> None:
    kept.finish()


def attach() -> None:
    hook.about_pass = about_pass
    steps.now_and_then.append(after_step)
    hook.forget_in_child.append(lambda: kept.__init__())  # type: ignore[misc]
