"""What a graph multiplies that torch.compile makes: dynamo shows each to its compiler, with the shapes of all results.

Nothing of a graph is changed, and nothing of it runs. A product's operations follow from its shapes: numbers or, in a
graph for batches of several sizes, expressions whose symbols a call's arguments fill in. An expression is multiplied
and never compared: dynamo would take the answer for a guard of the script's. What else multiplies, and operators that
are not PyTorch's own, are not known: their names are said.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from . import facts

WEIGHTS, PAIRS, OTHERS = range(3)  # tokens by weights; tokens by tokens, as attention does; convolutions
# Functions and methods of tensors that multiply two matrices: where these are among the arguments, and their names.
PRODUCTS = {
    **dict.fromkeys(("matmul", "mm", "bmm", "mv", "dot", "_grouped_mm", "grouped_mm"), (0, "input", 1, "other")),
    "linear": (0, "input", 1, "weight"),
    "addmm": (1, "mat1", 2, "mat2"),
    "baddbmm": (1, "batch1", 2, "batch2"),
}
BODIES = ("tag_activation_checkpoint", "wrap", "invoke_subgraph")  # of which the first argument is called once
FUNCTION = "autograd_function_apply"  # a torch.autograd.Function: its forward, its backward
CONVOLUTIONS = {f"conv{kind}{n}d" for kind in ("", "_transpose") for n in (1, 2, 3)}
UNKNOWN = {"lstm", "gru", "rnn_tanh", "rnn_relu", "bilinear", "tensordot", "addbmm"}
UNKNOWN |= {
    "scaled_mm",
    "_scaled_mm",
    "scaled_grouped_mm",
    "_scaled_grouped_mm",
    "_int_mm",
    "chain_matmul",
    "multi_dot",
}
UNKNOWN |= {"convolution", "conv_tbc", "cdist"}
OWN = ("aten", "prims", "prim", "c10d", "_c10d_functional", "c10d_functional", "fsdp", "higher_order")  # namespaces

Size = Any  # a number, or an expression of symbols


class Product(NamedTuple):
    kind: int
    operations: Size  # of one pass
    passes: int  # the forward one, and for each factor that wants a gradient one more
    type: str  # "bfloat16"
    positions: Size = 0  # that weights are applied to


class Lookup(NamedTuple):
    """Of a matrix of tokens in an embedding."""

    vocabulary: int
    features: int
    rows: Size
    width: Size
    padding: int | None


class Place(NamedTuple):
    """Where a call's arguments tell what a symbol stands for."""

    argument: int
    dimension: int | None  # None: the argument is the number itself
    symbol: Any


class Work:
    """Of one call of a graph."""

    def __init__(self, is_backward: bool) -> None:
        self.is_backward = is_backward  # a backward pass that is compiled as a whole, as compiled autograd does it
        self.products: list[Product] = []
        self.lookups: list[Lookup] = []
        self.places: list[Place] = []
        self.unknown: list[str] = []
        self.weights: set[int] = set()  # identities of what it was made with

    def read(self, module: Any, once: bool = False) -> None:
        """`once`: autograd does not look inside."""
        for node in module.graph.nodes:
            if node.op in ("call_function", "call_method"):
                self.read_call(module, node, once)
            elif node.op == "call_module" and any(True for _ in module.get_submodule(node.target).parameters()):
                self.note_unknown(type(module.get_submodule(node.target)).__name__)

    def read_inputs(self, module: Any) -> None:
        inputs = [node for node in module.graph.nodes if node.op == "placeholder"]
        for number, node in enumerate(inputs):
            value, given = value_of(node), node.meta.get("grapharg")
            example = facts.ask(lambda given=given: given.example)
            if getattr(value, "_is_param", False) or type(example).__name__ == "Parameter":
                self.weights.add(id(example))
            for dimension, size in enumerate(getattr(value, "shape", ())):
                self.note_place(number, dimension, size_of(size))
            self.note_place(number, None, size_of(value) if hasattr(value, "node") else None)
        self.weights |= {id(each) for each in module.parameters()}

    def note_place(self, argument: int, dimension: int | None, size: Size) -> None:
        if getattr(size, "is_Symbol", False):
            self.places.append(Place(argument, dimension, size))

    def note_unknown(self, name: str) -> None:
        if name not in self.unknown:
            self.unknown.append(name)

    # ---- One call ----

    def read_call(self, module: Any, node: Any, once: bool) -> None:
        name = name_of(node)
        if is_higher_order(node.target):
            self.read_bodies(module, node, name, once)
        elif name in UNKNOWN or is_another_ones(node):
            self.note_unknown(name)
        elif name in PRODUCTS:
            first, first_name, second, second_name = PRODUCTS[name]
            self.multiply(node, given(node, first, first_name), given(node, second, second_name), once)
        elif name == "scaled_dot_product_attention":
            self.attend(node, once)
        elif name == "multi_head_attention_forward":
            self.attend_with_projections(node, once)
        elif name == "einsum":
            self.sum_products(node, once)
        elif name in CONVOLUTIONS:
            self.convolve(node, name, once)
        elif name == "embedding":
            self.look_up(node)

    def add(self, node: Any, kind: int, operations: Size, factors: list[Any], once: bool, positions: Size = 0) -> None:
        result = value_of(node)
        result = result[0] if isinstance(result, (tuple, list)) else result
        wanted = 0 if once or not result.requires_grad else sum(each.requires_grad for each in factors)
        type_ = str(result.dtype).replace("torch.", "")
        self.products.append(Product(kind, operations, 1 + wanted, type_, positions))

    def multiply(self, node: Any, first: Any, second: Any, once: bool) -> None:
        a, b, result = value_of(first), value_of(second), value_of(node)
        if not all(map(is_plain, (a, b, result))):
            return self.note_unknown(name_of(node))
        operations = 2 * count(result.shape) * size_of(a.shape[-1])
        self.add(node, kind_of(a, b), operations, [a, b], once, count(a.shape[:-1]))

    def attend(self, node: Any, once: bool) -> None:
        """Scores, and values by their weights; of a causal one half of both."""
        query, key, value = (value_of(given(node, i, name)) for i, name in enumerate(("query", "key", "value")))
        if not all(map(is_plain, (query, key, value))):
            return self.note_unknown(name_of(node))
        length, features = size_of(key.shape[-2]), size_of(query.shape[-1]) + size_of(value.shape[-1])
        operations = 2 * count(query.shape[:-1]) * length * features
        if given(node, 5, "is_causal", False) and given(node, 3, "attn_mask") is None:
            operations = operations * (length + 1) / length / 2
        wants = any(each.requires_grad for each in (query, key, value))
        self.add(node, PAIRS, operations, [query, value] if wants else [], once)

    def attend_with_projections(self, node: Any, once: bool) -> None:
        """Of torch.nn.MultiheadAttention: sequences come first, and the result is as large as the queries."""
        query, key, value = (value_of(given(node, i, name)) for i, name in enumerate(("query", "key", "value")))
        weights = [given(node, 5, "in_proj_weight"), node.kwargs.get("q_proj_weight")]
        weight = next((value_of(each) for each in weights if each is not None), None)
        if not all(map(is_plain, (query, key, value, weight))):
            return self.note_unknown(name_of(node))
        width, positions = size_of(query.shape[-1]), count(query.shape[:-1])
        into, out = (count(each.shape) for each in (query, key, value)), count(query.shape)
        self.add(node, WEIGHTS, 2 * width * sum(into), [query, weight], once, positions)
        self.add(node, WEIGHTS, 2 * width * out, [weight, weight], once, positions)
        self.add(node, PAIRS, 4 * out * size_of(key.shape[0]), [weight, weight], once)

    def sum_products(self, node: Any, once: bool) -> None:
        equation, *factors = node.args
        if len(factors) == 1 and isinstance(factors[0], (list, tuple)):
            factors = list(factors[0])
        values = [value_of(each) for each in factors]
        letters = equation.replace(" ", "").split("->")[0].split(",") if isinstance(equation, str) else []
        if len(values) == 1:
            return
        if len(values) != 2 or "." in "".join(letters) or not all(map(is_plain, values)):
            return self.note_unknown("einsum")
        sizes = {at: size_of(n) for named, each in zip(letters, values) for at, n in zip(named, each.shape)}
        self.add(node, kind_of(*values), 2 * math.prod(sizes.values()), values, once, count(values[0].shape[:-1]))

    def convolve(self, node: Any, name: str, once: bool) -> None:
        """Each number of the larger side is multiplied with a window of the other's channels."""
        x, weight, result = value_of(given(node, 0, "input")), value_of(given(node, 1, "weight")), value_of(node)
        if not all(map(is_plain, (x, weight, result))):
            return self.note_unknown(name)
        larger = x if "transpose" in name else result
        self.add(node, OTHERS, 2 * count(larger.shape) * count(weight.shape[1:]), [x, weight], once)

    def look_up(self, node: Any) -> None:
        ids, table = value_of(given(node, 0, "input")), value_of(given(node, 1, "weight"))
        if is_plain(ids) and is_plain(table) and ids.dim() == 2:
            padding = given(node, 2, "padding_idx")
            self.lookups.append(Lookup(*map(size_of, (*table.shape, *ids.shape)), padding))

    # ---- Graphs within ----

    def read_bodies(self, module: Any, node: Any, name: str, once: bool) -> None:
        bodies = [getattr(module, each.target) for each in node.args if getattr(each, "op", "") == "get_attr"]
        bodies = [body for body in bodies if hasattr(body, "graph")]
        if name in BODIES:
            self.read(bodies[0], once)
        elif name == FUNCTION:
            for body in bodies:
                self.read(body, once=True)
        elif name.startswith("flex_attention") or any(map(multiplies, bodies)):
            self.note_unknown(name)

    # ---- With the sizes of a call ----

    def symbols(self, arguments: Any) -> dict[Any, int]:
        return {
            symbol: int(arguments[number] if dimension is None else arguments[number].shape[dimension])
            for number, dimension, symbol in self.places
        }


def value_of(node: Any) -> Any:
    """With its shape, as dynamo computed it."""
    return node.meta.get("example_value") if hasattr(node, "meta") else node


def given(node: Any, number: int, name: str, default: Any = None) -> Any:
    return node.args[number] if len(node.args) > number else node.kwargs.get(name, default)


def is_plain(value: Any) -> bool:
    """A tensor, none of several devices."""
    return hasattr(value, "fake_mode")


def kind_of(a: Any, b: Any) -> int:
    weighs = any(getattr(each, "_is_param", False) or each.dim() <= 2 for each in (a, b))
    return WEIGHTS if weighs else PAIRS


def size_of(size: Any) -> Size:
    return size if isinstance(size, int) else size.node.expr


def count(shape: Any) -> Size:
    return math.prod(map(size_of, shape))


def number_of(size: Size, symbols: dict[Any, int]) -> float | None:
    """None where not all symbols are known, as for the number of tokens that an expert gets."""
    if isinstance(size, (int, float)):
        return float(size)
    number = size.subs(symbols)
    return float(number) if number.is_number else None


def name_of(node: Any) -> str:
    target = node.target
    name = target if isinstance(target, str) else str(getattr(target, "__name__", "") or target)
    return name if is_higher_order(target) else name.split(".")[0]


def is_higher_order(target: Any) -> bool:
    return any(each.__name__ == "HigherOrderOperator" for each in type(target).__mro__)


def is_another_ones(node: Any) -> bool:
    """An operator of another library's that gets floating-point numbers."""
    schema = getattr(node.target, "_qualified_op_name", None) or str(getattr(node.target, "_schema", ""))
    if "::" not in schema or schema.split("::")[0] in OWN:
        return False
    values = map(value_of, node.all_input_nodes)
    return any(hasattr(each, "dtype") and each.dtype.is_floating_point for each in values)


def multiplies(body: Any) -> bool:
    names = {name_of(node) for node in body.graph.nodes if node.op in ("call_function", "call_method")}
    return bool(names & {*PRODUCTS, *CONVOLUTIONS, *UNKNOWN, "einsum", "scaled_dot_product_attention"})
