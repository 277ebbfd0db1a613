"""How many tokens a model computes, and how many of them are padding.

A batch's tokens are the matrix of integers that the model looks up in an embedding. It is looked at in one batch of
many, in memory of the host only: where a loader hands it over, or where the model is called with it. Of a batch that
exists on a device alone only the shape is read. What of the model computes for each token is learnt from the modules'
inputs in the first steps.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from ..core import batch, steps, waits
from ..core.interrupts import is_the_scripts
from ..core.runtime import Thread, clock, guarded, hook
from . import forward, graphs, padding

MOST_LOOKS = 256  # a training goes on as it began
LOOKS_FOR_NOTHING = 8  # whose batches are no tokens by then
# The longest rows of batches differ by a third, and eight of them say little: so many padded batches are looked at as
# soon as all looks together take a small part of the time.
SOON, MOST_OF_TIME = 64, 1 / 100
FIRST_SAID, MORE_SAID = 4, 1.25  # batches; then whenever there are so many times as many
MOST_ELEMENTS = 1 << 20  # of a matrix: a larger one would take milliseconds to look at
LEAST_WIDTH = 8  # what is narrower are features of a sample, not its tokens
MOST_SHAPES = 16
# The gradient of a whole table is set and added up in memory: a number of it takes as long as so many products.
PRODUCTS_OF_A_NUMBER = 20

Shape = tuple[int, int]


class Matrix:
    """One of integers, as it is compared with what was looked up: its shape, and on the host first row and column."""

    def __init__(self, torch: Any, value: Any) -> None:
        self.shape: Shape = (int(value.shape[0]), int(value.shape[1]))
        self.row: tuple[int, ...] | None = None
        if is_host_matrix(torch, value):
            self.row, self.column = tuple(value[0].tolist()), tuple(value[:, 0].tolist())


class Lookups:
    """What the first forward passes show: which matrix is looked up, and which part of the work follows it."""

    def __init__(self) -> None:
        self.shapes: set[Shape] = set()
        self.first_rows: set[tuple[int, ...]] = set()  # of those on the host
        self.latest: Shape | None = None
        self.latest_step = -1
        self.vocabulary = self.features = 0
        self.padding: int | None = None  # the id that the embedding itself calls padding
        self.work = self.of_tokens = 0  # weights times the positions that they are applied to
        self.attends = False  # a part is called an attention
        self.ambiguous = False  # a step looks up matrices of several shapes: which work is whose is not known

    def note(self, module: Any, given: Any) -> None:
        torch = sys.modules["torch"]
        self.attends = self.attends or "attention" in type(module).__name__.lower()
        if isinstance(given, torch.nn.utils.rnn.PackedSequence):  # of useful tokens alone
            self.work += weights_of(module) * int(given.data.shape[0])
        elif type(given) is not torch.Tensor or getattr(given, "is_nested", False):
            return
        elif isinstance(module, torch.nn.Embedding):
            if is_matrix(torch, given) and module.num_embeddings >= self.vocabulary:
                self.note_lookup(module, given)
        elif given.is_floating_point() and given.dim() >= 2:
            features = given.shape[1 if isinstance(module, torch.nn.modules.conv._ConvNd) else -1]
            self.note_work(weights_of(module), given.numel() // features if features else 0)

    def note_lookup(self, module: Any, given: Any) -> None:
        shape = (int(given.shape[0]), int(given.shape[1]))
        self.note_table(shape, module.num_embeddings, module.embedding_dim, module.padding_idx)
        if not module.sparse:
            self.work += PRODUCTS_OF_A_NUMBER * self.vocabulary * self.features
        if len(self.shapes) < MOST_SHAPES:
            self.shapes.add(shape)
            row = Matrix(sys.modules["torch"], given).row
            if row is not None:
                self.first_rows.add(row)

    def note_compiled(self, lookup: graphs.Lookup) -> None:
        """Of a compiled graph, of which no call is seen: shapes alone."""
        if lookup.vocabulary < self.vocabulary:
            return
        self.note_table((lookup.rows, lookup.width), lookup.vocabulary, lookup.features, lookup.padding)
        self.work += PRODUCTS_OF_A_NUMBER * self.vocabulary * self.features
        if len(self.shapes) < MOST_SHAPES:
            self.shapes.add((lookup.rows, lookup.width))

    def note_table(self, shape: Shape, vocabulary: int, features: int, padding: int | None) -> None:
        if vocabulary > self.vocabulary:  # what was looked up in a smaller table are no tokens: positions
            self.latest, self.latest_step = None, -1
            self.shapes.clear()
            self.first_rows.clear()
        self.ambiguous = self.ambiguous or (self.latest_step == hook.steps and shape != self.latest)
        self.latest, self.latest_step = shape, hook.steps
        self.vocabulary, self.features, self.padding = vocabulary, features, padding

    def note_work(self, weights: int, positions: int) -> None:
        self.work += weights * positions
        if self.latest is not None and positions == self.latest[0] * self.latest[1]:
            self.of_tokens += weights * positions

    def place_in(self, tried: list[tuple[batch.Path, Matrix]]) -> batch.Path | None:
        """Where the matrix lies among others of a batch: the one that fits, of several the one that was looked up. On a
        device, where only shapes are known, several that fit have one."""
        fitting = [each for each in tried if each[1].shape in self.shapes or each[1].shape[::-1] in self.shapes]
        if len(fitting) > 1 and any(matrix.row is not None for _, matrix in fitting):
            fitting = [each for each in fitting if self.has_looked_up(each[1])]
        return fitting[0][0] if fitting else None

    def has_looked_up(self, matrix: Matrix) -> bool:
        return matrix.row is not None and bool(self.first_rows & {matrix.row, matrix.column})

    def about(self) -> dict[str, Any]:
        if not self.work or self.ambiguous:
            return {}
        follows = round(self.of_tokens / self.work, 3)
        return {"follows": follows, "attends": self.attends, "features": self.features}


class Tokens:
    """When a batch is looked at, and what is said of all. Of the script's own, nothing is kept."""

    def __init__(self) -> None:
        self.lookups = Lookups()
        self.counted = padding.Counted()
        self.places: dict[str, batch.Path] = {}  # of the matrix in a batch, and in a call's arguments, once known
        self.tried: dict[str, list[tuple[batch.Path, Matrix]]] = {}  # before that, those of the latest look
        self.seen: dict[str, padding.Seen] = {}  # until it is known whether its loader feeds the training
        self.turned: bool | None = None  # sequences in columns: once the first batch has shown it
        self.filler: int | None = None  # the id that was found to fill rows
        self.untold = False  # what was taken for padding stood within rows
        self.looks = 0
        self.began, self.took = clock(), 0  # of looks at batches, ns
        self.goes_on = False  # from one batch to the next, not only after some steps
        self.said = 0  # of how many batches
        self.over = False

    # ---- When to look ----

    def next_step(self) -> None:
        """After a step: what the look before has brought, and the next one."""
        if self.over:
            return
        self.settle()
        torch = sys.modules["torch"]
        self.looks += 1
        if self.looks > MOST_LOOKS or (self.looks > LOOKS_FOR_NOTHING and not self.counted.batches):
            self.over = True
        elif not steps.state.in_window and not torch.autograd._profiler_enabled():
            self.goes_on = False
            waits.looks[:] = [self.look_at_batch]
            if forward.forward is not None:
                forward.forward.look_at_next(self.look_at_call)

    def settle(self) -> None:
        for source, tried in self.tried.items():
            place = self.lookups.place_in(tried)
            if source not in self.places and place is not None:
                self.places[source] = place
        seen, self.tried, self.seen = self.seen, {}, {}
        of_loader, of_call = seen.get("batch"), seen.get("call")
        if of_loader is not None and of_loader.loader == steps.state.training_loader:
            self.add(of_loader)
        elif of_call is not None:
            self.add(of_call)

    def add(self, seen: padding.Seen) -> None:
        self.counted.add(seen)
        batches = self.counted.batches
        is_news = batches >= MORE_SAID * self.said or batches < self.said  # fewer: only those with padding count now
        if batches >= FIRST_SAID and is_news:
            self.said = batches
            self.say()

    def say(self) -> None:
        hook.fact("tokens", {**self.counted.about(), **self.lookups.about()})

    def look_at_batch(self, found: Any) -> None:
        """That a loader has handed over."""
        begin = clock()
        if not self.goes_on or self.took < MOST_OF_TIME * (begin - self.began):
            self.ask(self.settle)
            self.look("batch", found, found)
            self.took += clock() - begin
            self.goes_on = self.wants_next()
        if self.goes_on:
            waits.looks.append(self.look_at_batch)

    def wants_next(self) -> bool:
        """After a batch of the training."""
        seen = self.seen.get("batch")
        if seen is None or seen.loader != steps.state.training_loader:
            return False
        return self.counted.is_padded() and self.counted.batches < SOON

    def look_at_call(self, module: Any, args: Any, kwargs: Any) -> None:
        """In training."""
        self.look("call", args, kwargs)

    def look(self, source: str, found: Any, names: Any) -> None:
        """Once between two steps."""
        begin = clock()
        self.ask(lambda: None if source in self.seen else self.keep(source, self.seen_in(source, found, names)))
        hook.extra_ns += clock() - begin

    def keep(self, source: str, seen: padding.Seen | None) -> None:
        if seen is not None:
            self.seen[source] = seen

    def ask(self, question: Any) -> None:
        """Tensors, batches and modules of strange kinds end the looks, and nothing else."""
        try:
            if not self.over:
                question()
        except Exception as error:
            if is_the_scripts(error):
                raise
            self.over = True

    # ---- One batch ----

    def seen_in(self, source: str, found: Any, names: Any) -> padding.Seen | None:
        torch = sys.modules["torch"]
        is_named = hasattr(names, "keys") and hasattr(names, "get")
        if is_named and "input_ids" in names:
            ids = names["input_ids"]
        else:
            ids = self.matrix_in(torch, source, found)
        if ids is None or not is_matrix(torch, ids):
            return None
        mask = names.get("attention_mask") if is_named else None
        if type(mask) is not torch.Tensor or mask.shape != ids.shape or mask.device.type != "cpu":
            mask = None
        loader = hook.here().fed_by
        size = None if loader is None else loader.counter.batch_size
        if self.turned is None:
            self.turned = ids.shape[1] == size != ids.shape[0]
        if self.turned:
            ids, mask = ids.t(), None if mask is None else mask.t()
        return self.read(ids, mask, None if source == "call" or loader is None else loader.id)

    def matrix_in(self, torch: Any, source: str, found: Any) -> Any:
        matrices = [(place, each) for place, each in tensors_in(found) if is_matrix(torch, each)]
        known = self.places.get(source)
        if known is None:
            self.tried[source] = [(place, Matrix(torch, each)) for place, each in matrices]
        return next((each for place, each in matrices if place == known), None)

    def read(self, ids: Any, mask: Any, loader: int | None) -> padding.Seen | None:
        rows, width = int(ids.shape[0]), int(ids.shape[1])
        if width < LEAST_WIDTH:
            return None
        told_by, useful = self.useful_in(ids, mask)
        return padding.Seen(loader, rows, width, padding.lengths(useful) if told_by else [], told_by)

    def useful_in(self, ids: Any, mask: Any) -> tuple[str, Any]:
        """What tells which tokens are of use, and which these are; ("", None) where nothing does."""
        nothing = "", None
        if self.untold or not is_host_matrix(sys.modules["torch"], ids):
            return nothing
        if mask is not None:
            return ("attention_mask", mask != 0) if padding.is_mask_of(mask, ids) else nothing
        told_by, value = self.value_in(ids)
        if value is None:
            return nothing
        if not padding.fills_ends(ids == value):
            self.withdraw()
            return nothing
        return told_by, ids != value

    def value_in(self, ids: Any) -> tuple[str, int | None]:
        """What stands for padding: what the embedding says, or what is found to."""
        if self.lookups.padding is not None:
            return "padding_idx", self.lookups.padding
        if self.filler is None:
            self.filler = padding.filler(ids)
        return "ends", self.filler

    def withdraw(self) -> None:
        """The id that filled the ends of rows stands within others."""
        self.untold = True
        self.counted.forget_lengths()
        if "tokens" in hook.facts:
            self.say()


def weights_of(module: Any) -> int:
    own = [each for each in module._parameters.values() if each is not None and not forward.is_lazy(each)]
    return sum(each.numel() for each in own if each.dim() >= 2)


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
    return is_matrix(torch, value) and value.device.type == "cpu" and 0 < value.numel() <= MOST_ELEMENTS


tokens = Tokens()


@guarded
def after_step(optimizer: Any, thread: Thread, end: int) -> None:
    tokens.next_step()


def at_module(module: Any, given: Any) -> None:
    tokens.ask(lambda: tokens.lookups.note(module, given))


def forget() -> None:
    waits.looks.clear()
    tokens.__init__()  # type: ignore[misc]


def attach() -> None:
    forward.at_module.append(at_module)
    steps.now_and_then.append(after_step)
    hook.forget_in_child.append(forget)
