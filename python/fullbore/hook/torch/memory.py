"""What holds the device's memory: weights, gradients and optimizers' states, from the objects themselves, and the peaks
that batches of different sizes reached.

PyTorch counts the highest peak since the process began, and resetting it would change what the script reads. So the
peak of a step is known where it is higher than all before: of ever larger batches, through which a line can be laid.
A batch that is larger than all before is said before it is computed, for it may be the one that ends the run.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from ..core import batch
from ..core.interrupts import is_the_scripts
from ..core.runtime import clock, guarded, hook
from . import facts, forward, held, tokens

FIRST_STEPS = 3  # states of the optimizer are made by the first
MOST_PEAKS = 32
MOST_CALLS = 64  # of outermost modules in a step: more are a network unrolled by the script, and none is of its batch
STATE_DEPTH = 3

ByType = dict[str, int]  # bytes by the type of a number


class Size(NamedTuple):
    """Of what the model is called with."""

    rows: int
    width: int  # tokens of a row; 0 where it is no matrix of tokens
    elements: int


class Memory:
    """Of what the script has, nothing is kept."""

    def __init__(self) -> None:
        self.follows = False  # the device is in use: each call is looked at, not the first alone
        self.largest: Size | None = None  # since the last reading
        self.most: Size | None = None  # the largest that was computed before it
        self.peak = 0
        self.peaks: dict[Size, list[int]] = {}  # the peak, and in which step
        self.about: dict[str, Any] = {}  # what is said
        self.step = self.calls = 0  # so many calls in this step
        self.over = False

    # ---- Calls ----

    def look(self, module: Any, args: Any, kwargs: Any) -> None:
        """At what an outermost module is called with, in training."""
        begin = clock()
        self.look_at(module, args, kwargs)
        hook.extra_ns += clock() - begin

    def look_at(self, module: Any, args: Any, kwargs: Any) -> None:
        self.count_call()
        if self.over:
            return
        if self.follows and forward.forward is not None:
            forward.forward.look_at_next(self.look)
        try:
            self.note_call(size_of(args, kwargs) if has_parameters(module) else None)
        except Exception as error:  # a tensor of a strange kind ends the looks, and nothing else
            if is_the_scripts(error):
                raise
            self.over = True

    def count_call(self) -> None:
        if self.step != hook.steps:
            self.step, self.calls = hook.steps, 0
        self.calls += 1
        if self.calls > MOST_CALLS and not self.over:
            self.over, self.largest, self.peaks = True, None, {}

    def note_call(self, size: Size | None) -> None:
        if size is None or not is_larger(size, self.largest):
            return
        self.largest = size
        if self.follows and is_larger(size, self.most):
            self.say(under_way=size)

    # ---- Steps ----

    def wants_reading(self) -> bool:
        """After a step: whether its peak is to be known, whatever was read within this second."""
        grown = self.largest is not None and is_larger(self.largest, self.most)
        return grown or 0 < hook.steps <= FIRST_STEPS

    def note(self, stats: Any, device: Any) -> None:
        """What the allocator says after a step."""
        peak, size = int(stats.get("allocated_bytes.all.peak", 0)), self.largest
        if size is not None:
            self.largest = None
            self.most = size if is_larger(size, self.most) else self.most
            if peak > self.peak or not self.peaks:
                self.peaks[size] = [peak, hook.steps - 1]
                self.peaks = thinned(self.peaks)
        self.peak = peak
        if hook.steps & (hook.steps - 1) == 0:  # steps 1, 2, 4, 8, ...
            self.weigh(stats, device)
        self.about["reserved"] = int(stats.get("reserved_bytes.all.peak", 0))
        self.say()

    def weigh(self, stats: Any, device: Any) -> None:
        self.about.update(facts.ask(lambda: weighed(held.held.alive(), held.called_in_training(), device)) or {})
        self.about.update(facts.ask(lambda: of_driver(int(stats.get("reserved_bytes.all.current", 0)), device)) or {})

    def say(self, under_way: Size | None = None) -> None:
        peaks = [[*size, *reached] for size, reached in self.peaks.items()]
        last = {} if under_way is None else {"under_way": list(under_way)}
        hook.fact("memory", {**self.about, "peaks": peaks, **last})


def thinned(peaks: dict[Size, list[int]]) -> dict[Size, list[int]]:
    """Every second one, where there are too many, and the last."""
    if len(peaks) <= MOST_PEAKS:
        return peaks
    items = list(peaks.items())
    return dict(items[:-1:2] + items[-1:])


# ---- Sizes ----


def is_larger(size: Size, than: Size | None) -> bool:
    """Where a model is called with tokens, what else it is called with is made of them."""
    return than is None or (size.width > 0, size.elements) > (than.width > 0, than.elements)


def has_parameters(module: Any) -> bool:
    """A loss has none, and its inputs are another model's results."""
    return next(module.parameters(), None) is not None


def size_of(args: Any, kwargs: Any) -> Size | None:
    torch = sys.modules["torch"]
    given = kwargs.get("input_ids")
    if given is None:
        found = (each for _, each in tokens.tensors_in([*args[: batch.MAX_ITEMS], *kwargs.values()]))
        given = next((each for each in found if isinstance(each, torch.Tensor) and each.dim() > 0), None)
    if given is None:
        return None
    rows, elements = int(given.shape[0]), int(given.numel())
    if not tokens.is_matrix(torch, given) or min(given.shape) < 1:
        return Size(rows, 0, elements)
    width = int(given.shape[1])
    if tokens.tokens.turned:
        rows, width = width, rows
    return Size(rows, width if width >= tokens.LEAST_WIDTH else 0, elements)


# ---- Bytes ----


def weighed(optimizers: Iterable[Any], modules: Iterable[Any], device: Any) -> dict[str, Any]:
    """Weights (and buffers), gradients and states on the device; what shares memory counts once."""
    seen: set[int] = set()
    parameters = list(parameters_of(optimizers, modules))
    weights = by_type((*parameters, *(each for module in modules for each in module.buffers())), device, seen)
    leaves = (each for each in parameters if each.is_leaf)  # of others, torch warns whoever asks for their gradient
    gradients = by_type((each.grad for each in leaves if each.grad is not None), device, seen)
    states: dict[str, ByType] = {}
    for optimizer in optimizers:
        for state in optimizer.state.values():
            for name, value in tensors_of(state, ""):
                add_to(states.setdefault(name, {}), value, device, seen)
    return {"weights": weights, "gradients": gradients, "states": {name: sums for name, sums in states.items() if sums}}


def parameters_of(optimizers: Iterable[Any], modules: Iterable[Any]) -> Iterator[Any]:
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            yield from group["params"]
    for module in modules:
        yield from module.parameters()


def tensors_of(value: Any, name: str, depth: int = 0) -> Iterator[tuple[str, Any]]:
    """With the name of the state that each is part of: "exp_avg". A count of steps is none."""
    if hasattr(value, "untyped_storage"):
        if value.dim():
            yield name, value
    elif depth < STATE_DEPTH:
        children = value.items() if isinstance(value, dict) else enumerate(value) if type(value) is list else ()
        for key, child in children:
            yield from tensors_of(child, name or str(key), depth + 1)


def by_type(tensors: Iterable[Any], device: Any, seen: set[int]) -> ByType:
    sums: ByType = {}
    for tensor in tensors:
        add_to(sums, tensor, device, seen)
    return sums


def add_to(sums: ByType, tensor: Any, device: Any, seen: set[int]) -> None:
    local = getattr(tensor, "_local_tensor", tensor)  # this rank's part of one that is sharded
    if forward.is_lazy(local) or local.device != device:
        return
    storage = local.untyped_storage()
    size, at = int(storage.nbytes()), int(storage.data_ptr())
    if size and at not in seen:
        seen.add(at)
        name = str(local.dtype).replace("torch.", "")
        sums[name] = sums.get(name, 0) + size


def of_driver(reserved: int, device: Any) -> dict[str, int]:
    """The device's memory, and what is used of it outside of this process's allocator, by whomever."""
    free, total = sys.modules["torch"].cuda.mem_get_info(device)
    return {"total": int(total), "outside": max(0, int(total) - int(free) - reserved)}


memory = Memory()


@guarded
def at_forward(module: Any) -> None:
    """While the first modules are learnt, when nobody knows yet whether the device will be used."""
    if not memory.follows and memory.largest is None and forward.forward is not None:
        forward.forward.look_at_next(memory.look)


def follow() -> None:
    """From now on the device is in use."""
    memory.follows = True
    if forward.forward is not None:
        forward.forward.look_at_next(memory.look)


def forget() -> None:
    memory.__init__()  # type: ignore[misc]


def attach() -> None:
    forward.at_forward.append(at_forward)
    hook.forget_in_child.append(forget)
