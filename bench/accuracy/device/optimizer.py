"""Optimizer steps: one kernel after another for each parameter, lists of parameters at once, or all in one pass."""

from __future__ import annotations

from math import ceil

from . import names
from .ops import Op, OpCall, shapes
from .silicon import Silicon

# Of torch.optim in its three implementations: elementwise passes, and tensors read and written in each.
PASSES = {"SGD": (3, 3), "Adam": (8, 3), "AdamW": (9, 3)}
FUSED_TENSORS = {"SGD": 5, "Adam": 7, "AdamW": 7}
FUNCTORS = {"SGD": "FusedSgdMathFunctor", "Adam": "FusedAdamMathFunctor", "AdamW": "FusedAdamMathFunctor"}
# Of multi_tensor_apply.cuh: how much one launch takes.
CHUNK, CHUNKS, TENSORS = 65_536, 320, 36
LOOP_FUNCTORS = ("MulFunctor", "CUDAFunctor_add", "addcmul_cuda_scalar_impl", "sqrt_kernel_cuda", "addcdiv_cuda_kernel")


def launches_of(parameters: list[int]) -> int:
    chunks = sum(ceil(numel / CHUNK) for numel in parameters)
    return max(1, ceil(len(parameters) / TENSORS), ceil(chunks / CHUNKS))


def step(kind: str, impl: str, parameters: list[int], silicon: Silicon, scaler: bool) -> list[Op]:
    ops = _unscale(parameters, silicon) if scaler else []
    if impl == "loop":
        return ops + _loop(kind, parameters, silicon)
    total, launches = sum(parameters), launches_of(parameters)
    fused = impl == "fused"
    passes, tensors = (1, FUSED_TENSORS[kind]) if fused else PASSES[kind]
    functor = FUNCTORS[kind] if fused else "BinaryOpListAlphaFunctor"
    kernel = silicon.memory_bound("optimizer", names.optimizer(impl, functor), 4.0 * tensors * total / launches)
    name = f"aten::_fused_{kind.lower()}_" if fused else "aten::_foreach_add_"
    call = OpCall(name, (kernel,) * launches)
    gather_ns = 40_000 + 400 * len(parameters)  # Python collects parameters, gradients and states
    first = Op((), (call,), before_ns=gather_ns, prepare_ns=2_500)
    return ops + [first] + [Op((), (call,), before_ns=4_000, prepare_ns=2_500)] * (passes - 1)


def _loop(kind: str, parameters: list[int], silicon: Silicon) -> list[Op]:
    passes, tensors = PASSES[kind]
    ops = []
    for numel in parameters:
        for number in range(passes):
            functor = LOOP_FUNCTORS[number % len(LOOP_FUNCTORS)]
            name = ("aten::mul_", "aten::add_", "aten::addcmul_", "aten::sqrt", "aten::addcdiv_")[number % 5]
            size = 4.0 * tensors * numel
            kernel = silicon.memory_bound("optimizer", names.optimizer("loop", functor), size, numel)
            call = OpCall(name, (kernel,), shapes([[numel], [numel]], "fp32"))
            ops.append(Op((), (call,), before_ns=6_000 if number == 0 else 1_500, enter_ns=2_500, prepare_ns=2_500))
    return ops


def _unscale(parameters: list[int], silicon: Silicon) -> list[Op]:
    total, launches = sum(parameters), launches_of(parameters)
    kernel = silicon.memory_bound("optimizer", names.optimizer("foreach", "UnaryOpFunctor"), 8.0 * total / launches)
    call = OpCall("aten::_amp_foreach_non_finite_check_and_unscale_", (kernel,) * launches)
    return [Op((), (call,), before_ns=30_000 + 300 * len(parameters))]
