"""How many floating-point operations a step takes, by the model's own modules.

Counted in the first steps alone, while every module's call is seen (forward.Forward.learn; of those that torch.compile
compiles, see graph_calls): linear layers and convolutions by what they return, attention by the lengths of what its
projections get. Forward once; backward once for a weight and once for an input that wants a gradient; once more what is
computed again within the backward pass. A multiplication with its addition is two. What else multiplies, and modules
with weights that are none of these, is not known: their names are said, so that nobody takes a part for all.

Of these operations two parts are told apart: what the backward pass computes again, and what of it would be left out if
only the parameters that an optimizer holds wanted gradients.
"""

from __future__ import annotations

import math
import sys
from typing import Any, NamedTuple

from ..core import steps
from ..core.interrupts import is_the_scripts
from ..core.runtime import Thread, guarded, hook
from . import exchanges, forward, graphs, held, tokens

MOST_PROJECTIONS = 8  # of one attention: more is a model that is called one
LEAST_PROJECTION = 0.15  # of the largest: queries, keys and values by one layer are three times as large as the outputs
LEAST_UNKNOWN = 0.01  # of the weights, or the operations: less than that may be of whatever module it likes
MOST_NAMES = 3


class Product(NamedTuple):
    """A linear layer's call."""

    module: int
    given: int  # the identity of its input, while the module that holds it is called
    shape: tuple[int, ...]  # of the input
    results: int  # features
    passes: int
    weight: int  # its identity
    again: bool  # within the backward pass


class Attention(NamedTuple):
    begin: int  # of its products
    operations: float
    passes: int  # of which the first is the forward one
    again: bool


class Count:
    """Of one step."""

    def __init__(self) -> None:
        self.products: list[Product] = []
        self.attentions: list[Attention] = []
        self.others = 0.0  # convolutions, recurrent layers
        self.applied: list[tuple[float, float, float]] = []  # of compiled graphs: weights, positions, operations
        self.squares = 0.0  # likewise: tokens by tokens
        self.lookups: list[graphs.Lookup] = []  # likewise
        self.is_compiled = False
        self.types: dict[str, float] = {}  # operations by the type of their results
        self.called: set[int] = set()  # modules whose gradients a backward pass is to follow
        self.owners: list[tuple[int, int]] = []  # parameters of modules, each with how many products came before it
        self.weights = 0
        self.unknown: dict[str, int] = {}  # weights by class
        self.operators: set[str] = set()  # that are not known, and may multiply whatever they like
        self.seen: set[int] = set()  # modules whose weights are counted

    # ---- One call ----

    def add(self, module: Any, args: Any, kwargs: Any, result: Any) -> None:
        torch = sys.modules["torch"]
        self.note_weights(torch, module)
        given = args[0] if args else next(iter(kwargs.values()), None)
        if isinstance(module, torch.nn.MultiheadAttention):
            self.add_attention_of_torch(torch, module, args, kwargs)
        elif isinstance(module, torch.nn.RNNBase):
            self.add_recurrent(torch, module, given)
        elif type(given) not in (torch.Tensor, torch.nn.Parameter) or not given.is_floating_point():
            self.leave_out(torch, module)
            self.find_attention(module, kwargs)
        elif is_linear(torch, module):
            shape, results = tuple(given.shape), int(result.shape[-1])
            weight, again = id(weight_of(module)), is_in_backward(torch)
            passes = self.passes(module, given)
            self.products.append(Product(id(module), id(given), shape, results, passes, weight, again))
            self.note_type(result.dtype, of_product(self.products[-1]))
        elif isinstance(module, torch.nn.modules.conv._ConvNd):
            operations = of_convolution(module, given, result) * self.passes(module, given)
            self.others += operations
            self.note_type(result.dtype, operations)
        else:
            self.find_attention(module, kwargs)

    def passes(self, module: Any, given: Any) -> int:
        """The forward pass, and what of the backward pass follows it; recomputation alone where that was counted."""
        torch = sys.modules["torch"]
        if not torch.is_grad_enabled():
            return 1
        again = is_in_backward(torch)
        if again and id(module) in self.called:
            return 1
        if not again:
            self.called.add(id(module))
        weight = weight_of(module)
        return 1 + int(weight is not None and weight.requires_grad) + int(given.requires_grad)

    def add_attention_of_torch(self, torch: Any, module: Any, args: Any, kwargs: Any) -> None:
        names = ("query", "key", "value")
        query, key, value = (kwargs.get(name, args[i] if len(args) > i else None) for i, name in enumerate(names))
        if type(query) is not torch.Tensor or query.is_nested or query.dim() < 2:
            return self.leave_out(torch, module)
        width, along = int(query.shape[-1]), 1 if module.batch_first and query.dim() == 3 else 0
        rows = query.shape[1 - along] if query.dim() == 3 else 1
        lengths = int(query.shape[along]) * int(key.shape[along])
        passes = self.passes(module, query)
        both = 3 if passes > 1 else 1  # of what has no input of the model's as a factor
        self.others += 2.0 * width * (passes * (query.numel() + key.numel() + value.numel()) + both * query.numel())
        operations = both * 4.0 * rows * lengths * width
        self.attentions.append(Attention(len(self.products), operations, both, is_in_backward(torch)))

    def add_recurrent(self, torch: Any, module: Any, given: Any) -> None:
        given = getattr(given, "data", given)
        if type(given) is torch.Tensor and given.is_floating_point():
            weights, positions = tokens.weights_of(module), given.numel() // given.shape[-1]
            self.others += 2.0 * weights * positions * self.passes(module, given)
        else:
            self.leave_out(torch, module)

    def note_type(self, dtype: Any, operations: float) -> None:
        name = str(dtype).replace("torch.", "")
        self.types[name] = self.types.get(name, 0) + operations

    def leave_out(self, torch: Any, module: Any) -> None:
        """A kind that is known, called with what is not: a tensor of several devices, or of sequences of any length."""
        if is_known(torch, module):
            self.note_unknown(module, tokens.weights_of(module))

    def note_unknown(self, module: Any, weights: int) -> None:
        name = type(module).__name__
        self.unknown[name] = self.unknown.get(name, 0) + weights

    def note_weights(self, torch: Any, module: Any) -> None:
        if id(module) in self.seen:
            return
        self.seen.add(id(module))
        before = len(self.products) + int(is_linear(torch, module))  # its own product comes before what follows it
        self.owners += [(id(each), before) for each in module._parameters.values() if each is not None]
        is_script = isinstance(module, torch.jit.ScriptModule)  # whose own modules are called behind our back
        weights = forward.parameter_count(module) if is_script else tokens.weights_of(module)
        self.weights += weights
        looks_up = isinstance(module, (torch.nn.Embedding, torch.nn.EmbeddingBag))
        if weights and not looks_up and not is_known(torch, module):
            self.note_unknown(module, weights)

    # ---- One call of a compiled graph ----

    def add_graph(self, work: graphs.Work, args: Any, again: bool) -> None:
        """`again`: all but the forward pass, which was counted when it was called for no gradient."""
        self.is_compiled = True
        symbols = work.symbols(args)
        self.operators.update(work.unknown)
        for each in work.products:
            once, positions = (graphs.number_of(size, symbols) for size in (each.operations, each.positions))
            if once is None or positions is None:
                self.operators.add("what the data decide the size of")
            else:
                self.add_of_graph(each, once, positions, each.passes - again)
        for lookup in work.lookups:
            rows, width = (graphs.number_of(size, symbols) for size in (lookup.rows, lookup.width))
            if rows is not None and width is not None:
                self.lookups.append(lookup._replace(rows=int(rows), width=int(width)))

    def add_of_graph(self, product: graphs.Product, once: float, positions: float, passes: int) -> None:
        operations = once * passes
        self.note_type(product.type, operations)
        if product.kind == graphs.WEIGHTS:
            self.applied.append((once / 2 / max(positions, 1), positions, operations))
        elif product.kind == graphs.PAIRS:
            self.squares += operations
        else:
            self.others += operations

    # ---- Attention by its projections ----

    def find_attention(self, module: Any, kwargs: Any) -> None:
        """Where a module has just returned that holds an attention's projections, or is called one."""
        begin = self.begin_of(module)
        inner = [each for each in self.attentions if each.begin >= begin]
        of_it = self.products[begin:]
        wide = without_adapters(of_it)
        if not 2 <= len(wide) <= MOST_PROJECTIONS or len(inner) > 1 or not is_attention(module, of_it):
            return
        operations = of_attention(wide)
        if operations is None:
            self.unknown[type(module).__name__] = self.weights
            return
        del self.attentions[len(self.attentions) - len(inner) :]
        if is_causal(module, kwargs):
            length = of_it[0].shape[-2]
            operations *= (length + 1) / 2 / length
        both = 3 if max(each.passes for each in wide) > 1 else 1
        self.attentions.append(Attention(begin, operations, both, of_it[0].again))

    def begin_of(self, module: Any) -> int:
        """Of the latest products, those of modules within this one."""
        if not self.products or not any(True for _ in module.children()):
            return len(self.products)
        within = {id(each) for each in module.modules()}
        begin = len(self.products)
        while begin > 0 and self.products[begin - 1].module in within:
            begin -= 1
        return begin

    # ---- All of them ----

    def about(self, lookup: tokens.Shape | None) -> dict[str, Any] | None:
        linear = [(math.prod(each.shape[:-1]), of_product(each)) for each in self.products]
        linear += [(positions, operations) for _, positions, operations in self.applied]
        squares = self.squares + sum(each.operations for each in self.attentions)
        total = self.others + squares + sum(operations for _, operations in linear)
        if total <= 0:
            return None
        unknown = self.names_of_unknown()
        found = {"step": round(total), "unknown": unknown}
        if self.types:
            found["type"] = max(self.types, key=lambda name: self.types[name])
        if not unknown:
            found.update(self.about_backward(total))
        if lookup is None:
            return found
        positions = lookup[0] * lookup[1]
        of_tokens = sum(operations for at, operations in linear if at == positions)
        return {**found, "of_tokens": round(of_tokens), "of_squares": round(squares), "width": lookup[1]}

    def about_backward(self, total: float) -> dict[str, int]:
        """Of the products and attentions: the backward pass, what it computes again, and what of it is in vain, unless
        other operations have a part of it."""
        if self.is_compiled:  # what a graph keeps for its backward pass is its compiler's choice
            return {}
        parts = {"again": 0.0, "backward": 0.0, "in_vain": 0.0}
        trains = trained_parameters()
        trained = min((before for ident, before in self.owners if ident in trains), default=0)
        for number, each in enumerate(self.products):
            once = of_product(each) / each.passes
            wanted = int(each.weight in trains) + int(number >= trained)
            parts["again"] += once * each.again
            parts["backward"] += once * (each.passes - 1)
            parts["in_vain"] += once * max(0, each.passes - 1 - wanted)
        for each in self.attentions:
            backward = each.operations * (each.passes - 1) / each.passes
            parts["again"] += (each.operations - backward) * each.again
            parts["backward"] += backward
            parts["in_vain"] += backward * (each.begin < trained)
        are_views = not any(each.weight in trains for each in self.products)  # as where FSDP keeps parameters flat
        if self.others > LEAST_UNKNOWN * total or are_views:
            del parts["in_vain"]
        return {name: round(part) for name, part in parts.items() if part > 0}

    def names_of_unknown(self) -> list[str]:
        names = sorted(self.operators)
        if sum(self.unknown.values()) > LEAST_UNKNOWN * self.weights:
            names += sorted(self.unknown, key=lambda name: -self.unknown[name])
        return list(dict.fromkeys(names))[:MOST_NAMES]


def trained_parameters() -> set[int]:
    """Identities of those that optimizers hold, as these and as the modules have them."""
    pairs = (pair for module in held.called_in_training() for pair in exchanges.gathered_of(module))
    own = held.held.parameters
    return own | {id(gathered) for sharded, gathered in pairs if id(sharded) in own}


def is_in_backward(torch: Any) -> bool:
    task = getattr(torch._C, "_current_graph_task_id", None)
    return task is not None and task() != -1


def weight_of(module: Any) -> Any:
    """No attribute is asked for: one that is computed would be computed once more than by the script. Where FSDP keeps
    the parameters flat, the weight is a plain tensor while the module is called."""
    own = module._parameters
    weight = own.get("weight", module.__dict__.get("weight"))
    return weight if weight is not None else next((each for each in own.values() if each is not None), None)


def is_linear(torch: Any, module: Any) -> bool:
    return isinstance(module, torch.nn.Linear) or is_linear_of_transformers(module)


def is_linear_of_transformers(module: Any) -> bool:
    """Conv1D: a linear layer whose weight lies the other way round."""
    return type(module).__name__ == "Conv1D" and hasattr(module, "nf")


def is_known(torch: Any, module: Any) -> bool:
    nn = torch.nn
    known = (nn.Linear, nn.modules.conv._ConvNd, nn.RNNBase, nn.MultiheadAttention)
    return isinstance(module, known) or is_linear_of_transformers(module)


def of_product(product: Product) -> float:
    return 2.0 * math.prod(product.shape) * product.results * product.passes


def without_adapters(products: list[Product]) -> list[Product]:
    """LoRA puts two products of a small rank beside a projection."""
    sizes = [each.shape[-1] * each.results for each in products]
    return [each for each, size in zip(products, sizes) if size >= max(sizes) * LEAST_PROJECTION]


def of_convolution(module: Any, given: Any, result: Any) -> float:
    """Each number of the larger side is multiplied with a window of the other's channels."""
    window = math.prod(module.kernel_size) / module.groups
    if module.transposed:
        return 2.0 * given.numel() * module.out_channels * window
    return 2.0 * result.numel() * module.in_channels * window


def is_attention(module: Any, products: list[Product]) -> bool:
    """By its name; or because three products of one input are queries, keys and values."""
    if is_called_attention(module):
        return True
    own = {id(child) for child in module.children()}
    first = [each for each in products if each.given == products[0].given and each.module in own]
    return len(first) == 3 and len({each.results for each in first[1:]}) == 1


def is_called_attention(module: Any) -> bool:
    name = type(module).__name__.lower()
    return "attention" in name or "attn" in name


def of_attention(products: list[Product]) -> float | None:
    """Scores, and values by their weights: 4 rows queries keys width."""
    first, last = products[0], products[-1]
    if any(len(each.shape) < 3 for each in (first, last)):
        return None  # sequences one behind the other: their lengths are not known
    projects_out = last.given != first.given and last.shape[:-1] == first.shape[:-1]
    width = last.shape[-1] if projects_out else first.results
    keys = max(each.shape[-2] for each in products)
    both = 3 if max(each.passes for each in products) > 1 else 1
    return both * 4.0 * math.prod(first.shape[:-1]) * keys * width


def is_causal(module: Any, kwargs: Any) -> bool:
    """The half above the diagonal is not computed, unless a mask is given or the script multiplies it itself."""
    config = getattr(module, "config", None)
    by_hand = getattr(config, "_attn_implementation", "") == "eager" or kwargs.get("attention_mask") is not None
    says = getattr(module, "is_causal", False) is True or "causal" in type(module).__name__.lower()
    return says and not by_hand


class Flops:
    """Of the steps during which the modules are seen, the last."""

    def __init__(self) -> None:
        self.count = Count()
        self.over = False

    def note(self, module: Any, args: Any, kwargs: Any, result: Any) -> None:
        """Modules of strange kinds end the count, and nothing else."""
        if self.over:
            return
        try:
            self.count.add(module, args, kwargs, result)
        except Exception as error:
            if is_the_scripts(error):
                raise
            self.over = True

    def end_step(self) -> None:
        whole = forward.forward is not None and forward.forward.learning
        if whole and not self.over:
            say(self.count)
        elif whole:
            say_why("modules of the model cannot be read")
        self.count = Count()


def say(count: Count) -> None:
    found = count.about(tokens.tokens.lookups.latest)
    if found is not None:
        hook.fact("flops", found)


def say_why(why: str) -> None:
    """Nothing is counted, or no more."""
    if "step" not in hook.facts.get("flops", {}):
        hook.fact("flops", {"why": why})


flops = Flops()


@guarded
def after_step(optimizer: Any, thread: Thread, end: int) -> None:
    flops.end_step()


def forget() -> None:
    flops.__init__()  # type: ignore[misc]


def attach() -> None:
    forward.at_result.append(flops.note)
    steps.after_first_steps.append(after_step)
    hook.forget_in_child.append(forget)
