"""What may be planted: the findings that name it, the change that cures it, and advice that would be wrong."""

from __future__ import annotations

from dataclasses import dataclass

PIN = r"pin_memory|\bpinned\b|\bpin\b"
BFLOAT16 = r"(?<!not for )(bfloat16|\bbf16\b)"  # that a device has no instructions for it may be said
ANY = r""  # all advice: none may be given


@dataclass(frozen=True)
class Cause:
    change: str  # its id, as in `explain --what-if`; empty where nothing helps
    expects: tuple[str, ...]  # patterns over "id cause" of the first finding
    # The part of the true shares that the finding's share should equal; `cost` is what the cure saves, where the loss
    # shows in several places.
    share: str = ""
    comes_with: tuple[str, ...] = ()  # losses that are part of the same problem
    # Advice that must not be given, as patterns over the text of any finding that promises a gain.
    forbids: tuple[str, ...] = ()
    # First findings that are wrong even if they promise nothing.
    never: tuple[str, ...] = ()
    what_if: bool = True  # whether `explain --what-if` knows the change; else the finding alone says what it gains


SYNC = ("sync", "launch")
COMM = ("comm", "waiting")

CAUSES: dict[str, Cause] = {
    "healthy": Cause("", ("healthy",), forbids=(ANY,)),
    "item": Cause("no-sync", ("sync-bound*",), "cost", SYNC),
    "synchronize": Cause("no-sync", ("sync-bound*",), "cost", (*SYNC, "data", "copy")),
    "pageable": Cause("pin", ("copy-bound*",), "copy", ("copy", *SYNC)),
    "same-stream": Cause("side-stream", ("copy-bound*",), "copy", ("copy",), (PIN,)),
    "link-bound": Cause("bytes", ("copy-bound*",), "copy", ("copy",), (PIN,)),
    "small-kernels": Cause("graphs", ("launch-bound*", "small-batch*"), "launch", ("launch",)),
    "by-hand": Cause("compile", ("inefficient-kernels*", "launch-bound*"), "", ("launch",)),
    "loop-optimizer": Cause("fused-optimizer", ("launch-bound*", "inefficient-kernels*"), "launch", ("launch",)),
    "fp32": Cause("precision", ("no-tensor-cores*",), "no-matrix-units"),
    "no-workers": Cause("loader", ("input-bound*",), "data", ("data", "launch")),
    "few-workers": Cause("loader", ("input-bound*",), "data", ("data", "launch")),
    "slow-device": Cause("straggler", ("straggler*",), "lateness", ("waiting",)),
    "slow-data": Cause("straggler", ("straggler*", "input-bound*"), "", ("waiting", "data")),
    "slow-links": Cause("comm", ("comm-bound*",), "comm", COMM),
    "no-overlap": Cause("overlap", ("comm-bound*",), "comm", COMM),
    "small-buckets": Cause("comm", ("comm-bound*",), "comm", COMM),
    "each-step": Cause("accumulate", ("comm-bound*",), "comm", COMM),
    "checkpoint": Cause("checkpoint", ("host-other checkpoint",), "checkpoint", ("checkpoint", "copy", *SYNC)),
    "validation": Cause("validation", ("host-other validation",), "", ("validation", *SYNC)),
    "garbage-collection": Cause(
        "garbage-collection", ("host-other garbage-collection",), "garbage-collection", ("garbage-collection", "launch")
    ),
    # What cannot be known must not be promised. Of a step that is mostly unexplained, that is what has to be said.
    "unexplained": Cause("", ("host-other*", "unexplained*"), "silent", ("silent", "launch"), (ANY,), ("healthy",)),
    "single-step": Cause("", ("*",), "", (), (ANY,), ("healthy",)),
    # Whether the activations would fit is not known: it is named, and its price said, and nothing promised.
    "recomputation": Cause("no-recompute", ("recomputation", "healthy"), "recomputed"),
    "fp8-overhead": Cause("16-bits", ("inefficient-kernels fp8-overhead",), "cost", ("launch",), what_if=False),
}
# Of which there are pairs from a seed of their own on, so that the others keep theirs.
LATER = {"recomputation": 100_000, "fp8-overhead": 200_000}
