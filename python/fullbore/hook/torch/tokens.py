"""How many of the tokens that a model computes are padding.

A batch's tokens are the matrix of integers that the model looks up in an embedding. It is looked at in one batch of
many, in memory of the host only: where a loader hands it over, or where the model is called with it. A batch that
exists on a device alone is never looked at. What of the model computes for each token is learnt from the modules'
inputs in the first steps.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

from ..core import batch, steps, waits
from ..core.interrupts import is_the_scripts
from ..core.runtime import Thread, clock, hook
from . import forward, padding

MOST_BATCHES = 256  # a training goes on as it began
FIRST_SAID = 4  # batches; then whenever their number has doubled
MOST_LENGTHS = 4096
POINTS = 32  # between the quantiles of the lengths
LEAST_WIDTH = 8  # what is narrower are features of a sample, not its tokens
MOST_SHAPES = 16

Shape = tuple[int, int]


class Lookups:
    """What the first forward passes show: which matrix is looked up, and which part of the work follows it."""

    def __init__(self) -> None:
        self.shapes: set[Shape] = set()
        self.latest: Shape | None = None
        self.vocabulary = self.features = 0
        self.padding: int | None = None  # the id that the embedding itself calls padding
        self.work = self.of_tokens = 0  # weights times the positions that they are applied to
        self.attends = False  # a part is called an attention

    def note(self, module: Any, given: Any) -> None:
        torch = sys.modules["torch"]
        self.attends = self.attends or "attention" in type(module).__name__.lower()
        if type(given) is not torch.Tensor:
            return
        if isinstance(module, torch.nn.Embedding):
            if is_matrix(torch, given) and module.num_embeddings >= self.vocabulary:
                self.vocabulary, self.features = module.num_embeddings, module.embedding_dim
                self.padding = module.padding_idx
                self.latest = (int(given.shape[0]), int(given.shape[1]))
                if len(self.shapes) < MOST_SHAPES:
                    self.shapes.add(self.latest)
        elif given.is_floating_point() and given.dim() >= 2:
            self.note_work(torch, module, given)

    def note_work(self, torch: Any, module: Any, given: Any) -> None:
        own = [each for each in module._parameters.values() if each is not None and not forward.is_lazy(each)]
        weights = sum(each.numel() for each in own if each.dim() >= 2)
        features = given.shape[1 if isinstance(module, torch.nn.modules.conv._ConvNd) else -1]
        if not weights or not features:
            return
        positions = given.numel() // features
        self.work += weights * positions
        if self.latest is not None and positions and positions % (self.latest[0] * self.latest[1]) == 0:
            self.of_tokens += weights * positions

    def is_looked_up(self, shape: Any) -> bool:
        return tuple(shape) in self.shapes or tuple(reversed(shape)) in self.shapes


class Seen(NamedTuple):
    """One batch."""

    loader: Any  # None where the model was called with it
    lengths: list[int]  # useful tokens of each row
    width: int
    told_by: str


class Sizes:
    """Of the rows of batches: their tokens, and as attention sees them, the squares of their widths."""

    def __init__(self) -> None:
        self.tokens = self.squares = 0

    def add(self, rows: int, width: int) -> None:
        self.tokens += rows * width
        self.squares += rows * width * width


class Tokens:
    """What is known so far. Of the script's own, nothing is kept."""

    def __init__(self) -> None:
        self.lookups = Lookups()
        self.places: dict[str, Any] = {}  # of the matrix within a batch, and within a call's arguments, once known
        self.tried: list[tuple[str, batch.Path, Shape]] = []  # matrices whose forward pass is still to come
        self.seen: Seen | None = None  # until it is known whether its loader feeds the training
        self.filler: int | None = None  # the id that was found to fill rows
        self.over = False
        self.batches = self.rows = self.useful = 0
        self.computed, self.longest = Sizes(), Sizes()
        self.lengths: list[int] = []
        self.widths: set[int] = set()
        self.told_by = ""

    # ---- When to look ----

    def next_step(self) -> None:
        """After a step: what the look before has brought, and the next one."""
        if self.over:
            return
        self.settle()
        torch = sys.modules["torch"]
        if self.batches >= MOST_BATCHES or hook.is_worker:
            self.over = True
        elif not steps.state.in_window and not torch.autograd._profiler_enabled():
            waits.looks[:] = [self.look_at_batch]
            if forward.forward is not None:
                forward.forward.look_at_next(self.look_at_call)

    def settle(self) -> None:
        for source, place, shape in self.tried:
            if source not in self.places and self.lookups.is_looked_up(shape):
                self.places[source] = place
        self.tried = []
        seen, self.seen = self.seen, None
        if seen is not None and (seen.loader is None or seen.loader == steps.state.training_loader):
            self.add(seen)

    def look_at_batch(self, found: Any) -> None:
        """That a loader has handed over."""
        loader = hook.here().fed_by
        if loader is not None:
            self.look("batch", found, found if named(found) else {}, loader)

    def look_at_call(self, args: Any, kwargs: Any) -> None:
        """Of a module, in training."""
        self.look("call", kwargs if named(kwargs) else args, kwargs, None)

    def look(self, source: str, found: Any, names: Any, loader: Any) -> None:
        """Once between two steps."""
        begin = clock()
        try:
            if self.seen is None and not self.over:
                self.seen = self.seen_in(source, found, names, loader)
        except Exception as error:  # tensors of strange kinds
            if is_the_scripts(error):
                raise
            self.over = True
        hook.extra_ns += clock() - begin

    # ---- One batch ----

    def seen_in(self, source: str, found: Any, names: Any, loader: Any) -> Seen | None:
        torch = sys.modules["torch"]
        ids = names["input_ids"] if found is names else self.matrix_in(torch, source, found)
        if ids is None or not is_host_matrix(torch, ids):
            return None
        mask = names.get("attention_mask") if names else None
        if not (type(mask) is torch.Tensor and mask.shape == ids.shape and mask.device.type == "cpu"):
            mask = None
        size = None if loader is None else loader.counter.batch_size
        if ids.shape[1] == size != ids.shape[0]:  # sequences in columns
            ids, mask = ids.t(), None if mask is None else mask.t()
        return self.read(ids, mask, None if loader is None else loader.id)

    def matrix_in(self, torch: Any, source: str, found: Any) -> Any:
        matrices = [(place, each) for place, each in tensors_in(found) if is_host_matrix(torch, each)]
        known = self.places.get(source)
        if known is not None:
            return next((each for place, each in matrices if place == known), None)
        self.tried += [(source, place, tuple(each.shape)) for place, each in matrices]
        return next((each for _, each in matrices if self.lookups.is_looked_up(each.shape)), None)

    def read(self, ids: Any, mask: Any, loader: int | None) -> Seen | None:
        width = int(ids.shape[1])
        if width < LEAST_WIDTH:
            return None
        if mask is not None:
            return Seen(loader, padding.lengths(mask != 0), width, "attention_mask")
        if self.lookups.padding is not None:
            return Seen(loader, padding.lengths(ids != self.lookups.padding), width, "padding_idx")
        if self.filler is None:
            self.filler = padding.filler(ids)
        if self.filler is None:
            return None
        if not padding.fills_ends(ids, self.filler):
            self.withdraw()
            return None
        return Seen(loader, padding.lengths(ids != self.filler), width, "ends")

    # ---- What is known ----

    def add(self, seen: Seen) -> None:
        rows = len(seen.lengths)
        self.batches += 1
        self.rows += rows
        self.useful += sum(seen.lengths)
        self.computed.add(rows, seen.width)
        self.longest.add(rows, max(seen.lengths))
        self.told_by = seen.told_by
        if len(self.lengths) + rows <= MOST_LENGTHS:
            self.lengths += seen.lengths
        if len(self.widths) < MOST_SHAPES:
            self.widths.add(seen.width)
        if self.batches >= FIRST_SAID and self.batches & (self.batches - 1) == 0:
            hook.fact("tokens", self.about())

    def about(self) -> dict[str, Any]:
        lookups = self.lookups
        known: dict[str, Any] = {}
        if lookups.work:
            follows = round(lookups.of_tokens / lookups.work, 3)
            known = {"follows": follows, "attends": lookups.attends, "features": lookups.features}
        return {
            "batches": self.batches,
            "rows": self.rows,
            "useful": self.useful,
            "computed": [self.computed.tokens, self.computed.squares],
            "longest": [self.longest.tokens, self.longest.squares],
            "widths": len(self.widths),
            "lengths": padding.quantiles(self.lengths, POINTS),
            "told_by": self.told_by,
            **known,
        }

    def withdraw(self) -> None:
        """The id that filled the ends of rows stands within others."""
        self.over = True
        if "tokens" in hook.facts:
            hook.fact("tokens", {})


def named(found: Any) -> bool:
    """Whether tokens and mask have the names that Transformers gives them."""
    return hasattr(found, "keys") and hasattr(found, "get") and "input_ids" in found.keys()


def tensors_in(value: Any, place: batch.Path = ()) -> Iterator[tuple[batch.Path, Any]]:
    if getattr(value, "shape", None) is not None:
        yield place, value
    elif len(place) < batch.MAX_DEPTH:
        for key, child in batch.children(value):
            yield from tensors_in(child, (*place, key))


def is_matrix(torch: Any, value: Any) -> bool:
    is_plain = type(value) is torch.Tensor and value.layout is torch.strided
    return is_plain and value.dtype in (torch.int64, torch.int32) and value.dim() == 2


def is_host_matrix(torch: Any, value: Any) -> bool:
    return is_matrix(torch, value) and value.device.type == "cpu" and value.numel() > 0


tokens = Tokens()


def after_step(optimizer: Any, thread: Thread, end: int) -> None:
    tokens.next_step()


def at_module(module: Any, given: Any) -> None:
    tokens.lookups.note(module, given)


def forget() -> None:
    waits.looks.clear()
    tokens.__init__()  # type: ignore[misc]


def attach() -> None:
    forward.at_module.append(at_module)
    steps.now_and_then.append(after_step)
    hook.forget_in_child.append(forget)
