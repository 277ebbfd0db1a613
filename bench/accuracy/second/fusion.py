"""torch.compile: chains of elementwise and normalizing operators become one kernel each, wrappers vanish."""

from second.kernels import Kernel
from second.ops import COMPILED_NS, Call, Model, Op, Param, kernels_of

FUSABLE = ("pointwise", "norm")
LONGEST = 12  # drawn by hand: nodes that inductor puts into one kernel
KEPT = 0.35  # drawn by hand: intermediates that the backward pass needs, and so are written after all


def fusable(op) -> bool:
    """Whether all kernels of an operator can be part of a generated one."""
    return isinstance(op, Op) and all(kernel.kind in FUSABLE for kernel in kernels_of(op))


def fuse(chain: list, number: int) -> list:
    """One generated kernel for a chain; intermediates stay in registers unless they are kept."""
    kernels = [kernel for op in chain for kernel in kernels_of(op)]
    if not kernels:
        return []
    reads, kept = kernels[0].reads, 0.0
    for before, kernel in zip(kernels, kernels[1:]):
        reads += max(0.0, kernel.reads - before.writes) * 0.7  # drawn by hand: some are inputs of both
        kept += KEPT * before.writes
    kind = "red" if any(kernel.kind == "norm" for kernel in kernels) else "poi"
    name = f"triton_{kind}_fused_{'_'.join(sorted({short(op) for op in chain if op.calls})[:4])}_{number}"
    blocks = max(kernel.blocks for kernel in kernels)
    kernel = Kernel(name, "pointwise", 0.0, reads, kernels[-1].writes + kept, blocks, 256)
    return [Op((), (Call(name, (kernel,), (), (), COMPILED_NS),), 0.0)]


def short(op: Op) -> str:
    """An operator's name as inductor puts it into a kernel's name."""
    return op.calls[0].name.split("::")[-1].strip("_")


def extern(op: Op) -> Op:
    """A product or convolution that stays a library's kernel, called from generated code."""
    calls = tuple(Call(call.name, call.kernels, call.shapes, (), COMPILED_NS) for call in op.calls)
    return Op((), calls, 1000.0, "", op.dtype)


def compile_pass(ops: list) -> list:
    """One pass after inductor; weights stay where they are in the list, at the end of the chain they stand in."""
    result, chain, waiting, number = [], [], [], 0
    for op in [*ops, None]:
        if isinstance(op, Param):
            waiting.append(op)
            continue
        if op is not None and fusable(op) and len(chain) < LONGEST:
            chain.append(op)
            continue
        result += fuse(chain, number) + waiting
        number, chain, waiting = number + 1, [], []
        if op is not None and fusable(op):
            chain = [op]
        elif op is not None:
            result.append(extern(op))
    return result


def compiled(model: Model) -> Model:
    """The model after torch.compile."""
    forward, backward = compile_pass(model.forward), compile_pass(model.backward)
    shapes = model.input_shape, model.target_shape
    return Model(forward, backward, model.params, *shapes, model.image, {}, model.buffers)
