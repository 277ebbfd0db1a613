"""A training program as the simulator runs it: what is computed, on what, and how the loop around it is written.

A change is another Program: `dataclasses.replace(program, pinned=True)`.
"""

from __future__ import annotations

from dataclasses import dataclass

from .hardware import DEVICES, Device
from .models import Shape, input_bytes

LABEL_BYTES = 8  # of a sample


@dataclass(frozen=True)
class Program:
    key: str  # what efficiencies are drawn from: the same before and after a change
    device_key: str
    shape: Shape
    batch: int
    precision: str  # fp32, tf32, amp-bf16, amp-fp16, bf16
    optimizer: str = "AdamW"  # SGD, Adam, AdamW
    optimizer_impl: str = "foreach"  # loop, foreach, fused
    fp8: bool = False  # linear layers, each tensor scaled by its largest element (torchao's dynamic scaling)
    compiled: bool = False
    graphs: bool = False
    recompute: bool = False  # each block's forward pass again in the backward pass, instead of its activations kept
    host_scale: float = 1.0  # of Python and framework: slow interpreters, busy hosts

    # The batch, from storage to the device
    fetch_ms: float = 5.0  # one worker, one batch
    fetch_spread: float = 0.1
    workers: int = 4
    input_scale: float = 1.0  # clips and large pictures: so many times the usual bytes
    as_bytes: bool = False  # uint8 over the link, made floats on the device
    pinned: bool = True
    non_blocking: bool = True
    side_stream: bool = False  # copied one batch ahead
    pageable_rate: float = 5e9  # bytes/s
    pin_rate: float = 10e9  # of the thread that copies batches into pinned memory

    # What the loop does besides
    items_per_step: int = 0  # .item() spread over the forward pass
    item_of_loss: int = 0  # loss.item() in every so many steps, 0 never
    device_sync: bool = False  # torch.cuda.synchronize() in each step
    checkpoint_every: int = 0
    checkpoint_ms: float = 0.0  # writing, besides copying the parameters to the host
    validation_every: int = 0
    validation_batches: int = 0
    validation_fetch_ms: float = 0.0
    gc_every: int = 0
    gc_ms: float = 0.0
    silent_ms: float = 0.0  # in each step something that no profiler sees

    # Several ranks
    ranks: int = 1
    fabric_scale: float = 1.0  # of the device's own links; 0.03 is a slow network
    overlap: bool = True  # all-reduces begin while the backward pass runs
    bucket_bytes: int = 25 << 20
    accumulate: int = 1  # steps between two all-reduces and optimizer steps
    slow_rank: int = -1
    slow_device: float = 1.0
    slow_fetch: float = 1.0

    # The recording
    steps: int = 6
    warmup: int = 3
    cold: bool = True  # a synchronisation before the first recorded step
    with_stack: bool = False
    sync_events: bool = False  # the profiler was asked for cuda_sync records
    host_events: bool = True
    shapes: bool = True
    whole_microseconds: bool = False

    @property
    def device(self) -> Device:
        return DEVICES[self.device_key]

    @property
    def batch_bytes(self) -> int:
        size = input_bytes(self.shape, self.batch) * self.input_scale
        return round(size / 4 if self.as_bytes else size)

    @property
    def scaler(self) -> bool:
        """fp16 needs a GradScaler, which looks in each step whether gradients overflowed."""
        return self.precision == "amp-fp16"
