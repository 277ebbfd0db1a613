"""Operators as the host runs them, and the kernels that they launch.

Host times are of an A100-class machine with the profiler on, as the gaps between calls in shared traces show them;
`hardware.Device.host_factor` scales them.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

CHECKPOINT_NS = 60_000  # of Python, before a block is computed again: its generator's state, its saved inputs


@dataclass(frozen=True)
class Kernel:
    kind: str  # gemm, conv, attention, pointwise, reduction, norm, embedding, optimizer, collective
    name: str
    ns: float  # with the device to itself
    flops: float = 0.0
    bytes: float = 0.0
    fill: float = 1.0  # of the device's units
    matrix_units: bool = False  # tensor cores, or what AMD calls matrix cores
    args: str = ""  # of the profiler's event


@dataclass(frozen=True)
class OpCall:
    """The operator that launches: `aten::addmm` inside `aten::linear`."""

    name: str
    kernels: tuple[Kernel, ...]
    args: str = ""


@dataclass(frozen=True)
class Chain:
    """What a compiler needs to know to fuse an elementwise operator with its neighbours."""

    numel: int
    flows_in: float  # bytes of the tensor that comes from the operator before
    side: float  # bytes of other inputs
    flows_out: float
    ends: bool = False  # a normalisation: can be the last of a chain, not its middle


@dataclass(frozen=True)
class Op:
    names: tuple[str, ...]  # outermost first, around `calls`
    calls: tuple[OpCall, ...]
    args: str = ""
    before_ns: float = 9_000  # Python: the module's call
    enter_ns: float = 4_000  # dispatcher, autograd
    prepare_ns: float = 4_500  # before each launch: allocation, tensor iterator
    leave_ns: float = 1_800
    chain: Chain | None = None
    grads: tuple[int, ...] = field(default_factory=tuple)  # elements of the gradients that are ready after it
    differentiated: bool = False  # a gradient of it is to be computed
    again: tuple[Op, ...] = ()  # of the backward pass: what it runs again of the forward pass, before its own calls

    @property
    def host_ns(self) -> float:
        """Without the launches' own time."""
        prepared = sum(len(call.kernels) for call in self.calls) * self.prepare_ns
        again = sum(op.host_ns for op in self.again) + (CHECKPOINT_NS if self.again else 0)
        return self.before_ns + self.enter_ns + prepared + self.leave_ns * (len(self.calls) + 1) + again

    @property
    def kernels(self) -> list[Kernel]:
        again = [kernel for op in self.again for kernel in op.kernels]
        return again + [kernel for call in self.calls for kernel in call.kernels]


TYPE_NAMES = {"fp32": "float", "tf32": "float", "fp16": "c10::Half", "bf16": "c10::BFloat16", "int64": "long int"}
TYPE_NAMES["fp8"] = "c10::Float8_e4m3fn"


def shapes(dims: list[list[int]], dtype: str) -> str:
    """The profiler's arguments with record_shapes."""
    types = ", ".join(f'"{TYPE_NAMES[dtype]}"' if each else '"Scalar"' for each in dims)
    return f'"Input Dims": {dims}, "Input type": [{types}]'


def backward_of(name: str, calls: tuple[OpCall, ...], grads: tuple[int, ...] = (), **more) -> Op:
    """As autograd's thread runs it."""
    names = (f"autograd::engine::evaluate_function: {name}", name)
    return Op(names, calls, before_ns=2_200, enter_ns=3_500, prepare_ns=4_000, grads=grads, **more)


def accumulate(numel: int) -> Op:
    """AccumulateGrad of a parameter whose gradient was None: the tensor is taken over, nothing is launched."""
    names = ("autograd::engine::evaluate_function: torch::autograd::AccumulateGrad", "torch::autograd::AccumulateGrad")
    return Op(names, (), before_ns=1_500, enter_ns=2_500, leave_ns=1_500, grads=(numel,))


def with_pace(ops: list[Op], before_ns: float, prepare_ns: float) -> list[Op]:
    return [replace(op, before_ns=before_ns, prepare_ns=prepare_ns) for op in ops]
