"""Numbers so small that a CPU computes them slowly: below 1.2e-38 in float32 (denormals). The momentum of weights that
have no gradient any more becomes such numbers, and stays.

Looked for where a window begins: in a sample of each of the largest parameters, gradients and tensors of the
optimizer's state, taken all over the tensor, as the rows of a table may be sorted by how often they are used. What a
pass over such a sample takes longer than one over zeros is measured on this CPU, as others do not mind them. Of tensors
of a million numbers that took 2 to 3 ms, and 12 ms where all were denormal, in a step that counts in no throughput.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, Callable

from ..core.interrupts import is_the_scripts
from ..core.runtime import hook

LEAST_NORMAL = 2.0**-126
SAMPLE, PIECES, LARGEST, PASSES, ROWS = 16384, 8, 8, 3, 8
WORTH_SAYING = 0.001  # of the numbers


def look(torch: Any, optimizer: Any) -> None:
    """States what it finds. Tensors of strange kinds are not worth the rest of the recording."""
    try:
        state(torch, optimizer)
    except Exception as error:
        if is_the_scripts(error):
            raise


def state(torch: Any, optimizer: Any) -> None:
    """As a fact: which part of parameters, gradients and state is denormal, and what that adds to a pass over them."""
    found = {}
    with torch.no_grad():
        for name, tensors in tensors_of(torch, optimizer).items():
            largest = sorted(tensors, key=lambda tensor: -tensor.numel())[:LARGEST]
            costs = [cost_of(torch, tensor) for tensor in largest]
            numbers = sum(tensor.numel() for tensor in largest)
            denormal = sum(part * tensor.numel() for (part, _), tensor in zip(costs, largest))
            if denormal > WORTH_SAYING * numbers:
                cost_ns = sum(ns for _, ns in costs)
                found[name] = {"ratio": round(denormal / numbers, 4), "ns": int(cost_ns)}
                if name == "parameters":
                    worst = max(zip(costs, range(len(costs))))[1]
                    found[name]["product"] = round(product(torch, largest[worst]), 1)
    if found or hook.facts.get("denormals"):
        hook.fact("denormals", found)


def tensors_of(torch: Any, optimizer: Any) -> dict[str, list[Any]]:
    parameters = [each for group in optimizer.param_groups for each in group["params"]]
    kept = [optimizer.state.get(each) for each in parameters]
    state = [value for each in kept if isinstance(each, dict) for value in each.values()]
    found = {"parameters": parameters, "gradients": [each.grad for each in parameters], "state": state}
    return {name: list(plain(torch, tensors)) for name, tensors in found.items()}


def plain(torch: Any, tensors: list[Any]) -> Iterator[Any]:
    for tensor in tensors:
        is_tensor = type(tensor) in (torch.Tensor, torch.nn.Parameter)
        if is_tensor and tensor.layout is torch.strided and tensor.device.type == "cpu":
            if tensor.dtype is torch.float32 and tensor.is_contiguous() and tensor.numel() >= 1024:
                yield tensor.detach()


def cost_of(torch: Any, tensor: Any) -> tuple[float, float]:
    """The part of a sample that is denormal, and what that adds to a pass over all of the tensor."""
    sample = sample_of(torch, tensor)
    size, sizes = sample.numel(), sample.abs()
    part = int(((sizes > 0) & (sizes < LEAST_NORMAL)).sum()) / size
    if not part:
        return 0.0, 0.0
    nothing = torch.zeros_like(sample)
    more = shortest_ns(lambda: sample * 0.5) - shortest_ns(lambda: nothing * 0.5)
    return part, max(0, more) * tensor.numel() / size


def sample_of(torch: Any, tensor: Any) -> Any:
    """Pieces at equal distances, from the first number to the last."""
    numbers, size = tensor.view(-1), SAMPLE // PIECES
    if numbers.numel() <= SAMPLE:
        return numbers
    last = numbers.numel() - size
    return torch.cat([numbers.narrow(0, last * piece // (PIECES - 1), size) for piece in range(PIECES)])


def product(torch: Any, tensor: Any) -> float:
    """How many times as long a product of matrices takes with a sample of the tensor as with ordinary numbers."""
    sample = sample_of(torch, tensor)
    side = int(sample.numel() ** 0.5)
    matrix, usual = sample[: side * side].view(side, side), torch.ones_like(sample)[: side * side].view(side, side)
    rows = usual[:ROWS]
    return shortest_ns(lambda: rows @ matrix) / max(1, shortest_ns(lambda: rows @ usual))


def shortest_ns(call: Callable[[], Any]) -> int:
    taken = []
    for _ in range(PASSES):
        begin = time.perf_counter_ns()
        call()
        taken.append(time.perf_counter_ns() - begin)
    return min(taken)
