"""From a finding to the program after its advice was taken, so that advice other than the planted cure can be tried.

What is recommended is read as a person reads it: the finding says what is wrong, and its first fix what to do.
"""

from __future__ import annotations

import re
from dataclasses import replace

from .program import Program

FASTER_LINKS = 4  # what "faster links between the ranks" is taken to mean
FEWER_EXCHANGES = 4  # and "exchange less often"


def advised(finding: dict, program: Program) -> Program | None:
    """None where the finding promises nothing, or recommends what the simulator cannot do."""
    taken = TAKEN.get(finding["id"])
    if "speedup" not in finding or taken is None:
        return None
    text = " ".join([finding.get("change", ""), *finding.get("fix", [])[:1]]).lower()
    changed = taken(program, finding.get("cause", ""), text)
    return None if changed == program else changed


def _launch(program: Program, cause: str, text: str) -> Program:
    """torch.compile, with CUDA graphs (mode="reduce-overhead") where nothing stands in their way."""
    if "fused=true" in text:
        return replace(program, optimizer_impl="fused")
    graphs = program.ranks == 1 and program.items_per_step == 0 and ("graph" in text or "reduce-overhead" in text)
    return replace(program, compiled=program.compiled or "compile" in text, graphs=program.graphs or graphs)


def _sync(program: Program, cause: str, text: str) -> Program:
    if program.items_per_step or program.item_of_loss or program.device_sync:
        return replace(program, items_per_step=0, item_of_loss=0, device_sync=False)
    if program.scaler and program.optimizer_impl != "fused":
        return replace(program, optimizer_impl="fused")
    return replace(program, pinned=True, non_blocking=True)


def _copy(program: Program, cause: str, text: str) -> Program:
    if re.search(r"uint8|fewer bytes", text):
        return replace(program, as_bytes=True)
    if re.search(r"pin_memory|pinned", text):
        return replace(program, pinned=True, non_blocking=True)
    return replace(program, pinned=True, non_blocking=True, side_stream=True)


def _precision(program: Program, cause: str, text: str) -> Program:
    if "bf16" in program.device.peak:
        return replace(program, precision="amp-bf16")
    return replace(program, precision="amp-fp16")


def _input(program: Program, cause: str, text: str) -> Program:
    named = re.search(r"num_workers=(\d+)", text)
    return replace(program, workers=int(named.group(1)) if named else 4 * max(1, program.workers))


def _comm(program: Program, cause: str, text: str) -> Program:
    if "accumulat" in text or "no_sync" in text:
        return replace(program, accumulate=FEWER_EXCHANGES * program.accumulate)
    if "overlap" in text:
        return replace(program, overlap=True)
    if "bucket" in text:
        return replace(program, bucket_bytes=25 << 20)
    return replace(program, fabric_scale=min(1.0, FASTER_LINKS * program.fabric_scale))


def _straggler(program: Program, cause: str, text: str) -> Program:
    return replace(program, slow_rank=-1, slow_device=1.0, slow_fetch=1.0)


def _other(program: Program, cause: str, text: str) -> Program:
    if cause == "checkpoint":
        return replace(program, checkpoint_ms=0.0)
    if cause == "validation":
        return replace(program, validation_every=0)
    return replace(program, gc_every=0) if cause == "garbage-collection" else program


def _kernels(program: Program, cause: str, text: str) -> Program:
    if cause == "fp8-overhead":
        return replace(program, fp8=False)
    return replace(program, optimizer_impl="fused") if "fused=true" in text else replace(program, compiled=True)


TAKEN = {
    "launch-bound": _launch,
    "sync-bound": _sync,
    "copy-bound": _copy,
    "no-tensor-cores": _precision,
    "input-bound": _input,
    "comm-bound": _comm,
    "straggler": _straggler,
    "host-other": _other,
    "inefficient-kernels": _kernels,
}
