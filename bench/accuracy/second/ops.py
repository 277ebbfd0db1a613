"""Operators: what the host does to launch kernels, nested as the profiler sees it."""

from dataclasses import dataclass, field

# Times of the host at a fast core, eager PyTorch 2.x; a program's own factor multiplies them. The sum for one
# operator with one kernel is 10 to 20 us, as in public traces (shared/traces/vit-h100-eager: linear 38 us recorded).
PYTHON_NS = 3500.0  # drawn by hand: Python around a function of torch
MODULE_NS = 6500.0  # drawn by hand: nn.Module's __call__ and its forward
DISPATCH_NS = 2300.0  # drawn by hand: dispatcher, autograd's bookkeeping, TensorIterator
VIEW_NS = 800.0  # drawn by hand: aten::t, aten::view: no kernel
ENGINE_NS = 3000.0  # drawn by hand: autograd's engine for one node
LAUNCH_NS = 4300.0  # cudaLaunchKernel: 4 to 6 us
COMPILED_NS = 1500.0  # drawn by hand: inductor's generated wrapper around one kernel


@dataclass(frozen=True)
class Call:
    """One ATen operator with the kernels that it launches."""

    name: str
    kernels: tuple = ()
    shapes: tuple = ()
    views: tuple = ()  # children without kernels, as aten::t
    dispatch: float = DISPATCH_NS
    viewed: tuple = ()  # the shape that the views look at


@dataclass(frozen=True, eq=False)
class Op:
    """What stands in one outermost operator (or autograd node)."""

    names: tuple  # wrappers, outermost first
    calls: tuple
    python: float = PYTHON_NS  # before it, on the host, not recorded as an operator
    module: str = ""  # nn.Module, for python_function events
    dtype: str = "float"
    inside: float = 0.0  # work of the wrappers themselves


@dataclass(frozen=True, eq=False)
class Param:
    """A weight: in a backward list it stands where its gradient is complete."""

    shape: tuple
    count: int
    name: str = ""


@dataclass
class Model:
    """A model at one batch size: what its passes do, and what comes in."""

    forward: list
    backward: list  # Op and Param
    params: list
    input_shape: tuple
    target_shape: tuple
    image: bool
    sequence: dict = field(default_factory=dict)  # op -> autograd's sequence number, the same in both passes
    buffers: list = field(default_factory=list)  # Param, not trained
    kernels: int = 0
    weights: int = 0

    def __post_init__(self):
        self.weights = sum(param.count for param in self.params)
        self.kernels = sum(len(kernels_of(op)) for op in self.operators())

    def operators(self):
        """Operators of both passes."""
        yield from self.forward
        yield from (op for op in self.backward if isinstance(op, Op))


def kernels_of(op: Op) -> list:
    """All kernels that an operator launches."""
    return [kernel for call in op.calls for kernel in call.kernels]


def host_ns(op: Op) -> float:
    """Time of an operator on a fast host, without noise and profiler."""
    inside = sum(call.dispatch + VIEW_NS * len(call.views) + LAUNCH_NS * len(call.kernels) for call in op.calls)
    return op.python + op.inside + DISPATCH_NS * 0.5 * len(op.names) + inside


def simple(name: str, kernels: tuple, shapes: tuple = (), python: float = PYTHON_NS, dtype: str = "float") -> Op:
    """An operator without wrappers."""
    return Op((), (Call(name, kernels, shapes),), python, "", dtype)


def node(name: str, calls: tuple, dtype: str = "float") -> Op:
    """A node of autograd's graph, run by its own thread."""
    return Op((f"autograd::engine::evaluate_function: {name}", name), calls, ENGINE_NS, "", dtype)
