"""What torch.compile does to a list of operators: chains of elementwise work become one kernel each."""

from __future__ import annotations

from dataclasses import replace

from . import names
from .ops import Op, OpCall
from .silicon import Silicon

GUARDS_NS = 60_000  # of a compiled region: is it still valid for these inputs?
# A region calls kernels from generated Python, without modules, dispatcher and autograd in between.
BETWEEN_NS, ENTER_NS, PREPARE_NS, LEAVE_NS = 1_500, 500, 3_500, 500


def compiled(ops: list[Op], silicon: Silicon) -> list[Op]:
    grown: list[Op] = []
    for group in chains(without_accumulation(ops)):
        op = fused(group, silicon, len(grown)) if len(group) > 1 else group[0]
        pace = {"before_ns": BETWEEN_NS, "enter_ns": ENTER_NS, "prepare_ns": PREPARE_NS, "leave_ns": LEAVE_NS}
        grown.append(replace(op, **pace))
    if grown:
        grown[0] = replace(grown[0], before_ns=GUARDS_NS)
    return grown


def without_accumulation(ops: list[Op]) -> list[Op]:
    """Gradients are results of the compiled region: they are ready with the operator that computes them."""
    kept: list[Op] = []
    for op in ops:
        if op.calls or not kept:
            kept.append(op)
        else:
            kept[-1] = replace(kept[-1], grads=kept[-1].grads + op.grads)
    return kept


def chains(ops: list[Op]) -> list[list[Op]]:
    """Neighbours that one kernel can do: elementwise, over as many elements, with at most one normalisation."""
    groups: list[list[Op]] = []
    for op in ops:
        group = groups[-1] if groups else []
        fits = (
            group
            and op.chain is not None
            and group[-1].chain is not None
            and op.chain.numel == group[-1].chain.numel
            and not (op.chain.ends and any(each.chain.ends for each in group))
        )
        if fits:
            group.append(op)
        else:
            groups.append([op])
    return groups


def fused(group: list[Op], silicon: Silicon, number: int) -> Op:
    """Reads what comes from outside once and writes the last result: tensors in between are gone."""
    links = [op.chain for op in group]
    size = links[0].flows_in + sum(link.side for link in links) + links[-1].flows_out
    words = [op.calls[0].name.split("::")[-1].strip("_") for op in group]
    flops = sum(kernel.flops for op in group for kernel in op.kernels)
    kernel = silicon.memory_bound("pointwise", names.triton(number, words), size, flops)
    grads = tuple(numel for op in group for numel in op.grads)
    return replace(group[0], names=(), calls=(OpCall(kernel.name, (kernel,)),), grads=grads)
