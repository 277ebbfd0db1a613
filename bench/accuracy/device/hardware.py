"""Devices and hosts as the simulator knows them: data-sheet figures, and what programs usually reach of them.

Peaks and bandwidths are dense data-sheet figures: NVIDIA V100 (SXM2 32 GB), A100 (SXM4 80 GB), H100 (SXM5) and AMD
MI300X product briefs. Launch figures are what the traces of V100, H100 and MI300X in tests show for calls, for the
delay from a call to its kernel on an idle stream, and for the gap between two queued kernels. Link figures are what
bandwidthTest and nccl-tests usually reach on such machines.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Device:
    key: str
    name: str  # as the profiler prints it
    vendor: str  # nvidia or amd
    capability: tuple[int, int]
    units: int  # streaming multiprocessors or compute units
    memory_bytes: int
    bytes_per_s: float
    peak: dict[str, float]  # FLOP/s of matrix work by number format; a format that is not there is not supported
    vector_flops: float  # of work outside matrix units
    link_bytes_per_s: float  # from and to pinned host memory
    fabric_bytes_per_s: float  # bus bandwidth of collectives within a machine
    call_ns: int  # of a launch
    delay_ns: int  # from the begin of a launch to its kernel, if the stream is idle
    gap_ns: int  # between two kernels that are both queued
    host_factor: float  # how slow the hosts that such devices are usually built into are


GIB = 1 << 30

DEVICES = {
    device.key: device
    for device in (
        Device(
            key="v100",
            name="Tesla V100-SXM2-32GB",
            vendor="nvidia",
            capability=(7, 0),
            units=80,
            memory_bytes=32 * GIB,
            bytes_per_s=900e9,
            peak={"fp32": 15.7e12, "fp16": 125e12},
            vector_flops=15.7e12,
            link_bytes_per_s=12.3e9,
            fabric_bytes_per_s=110e9,
            call_ns=7_500,
            delay_ns=10_500,
            gap_ns=1_100,
            host_factor=1.25,
        ),
        Device(
            key="a100",
            name="NVIDIA A100-SXM4-80GB",
            vendor="nvidia",
            capability=(8, 0),
            units=108,
            memory_bytes=80 * GIB,
            bytes_per_s=2039e9,
            peak={"fp32": 19.5e12, "tf32": 156e12, "fp16": 312e12, "bf16": 312e12},
            vector_flops=19.5e12,
            link_bytes_per_s=25.2e9,
            fabric_bytes_per_s=230e9,
            call_ns=5_200,
            delay_ns=7_400,
            gap_ns=1_200,
            host_factor=1.0,
        ),
        Device(
            key="h100",
            name="NVIDIA H100 80GB HBM3",
            vendor="nvidia",
            capability=(9, 0),
            units=132,
            memory_bytes=80 * GIB,
            bytes_per_s=3350e9,
            peak={"fp32": 66.9e12, "tf32": 494.7e12, "fp16": 989.4e12, "bf16": 989.4e12, "fp8": 1978.9e12},
            vector_flops=66.9e12,
            link_bytes_per_s=52e9,
            fabric_bytes_per_s=360e9,
            call_ns=4_600,
            delay_ns=6_300,
            gap_ns=1_100,
            host_factor=0.8,
        ),
        Device(
            key="mi300x",
            name="AMD Instinct MI300X",
            vendor="amd",
            capability=(9, 4),
            units=304,
            memory_bytes=192 * GIB,
            bytes_per_s=5300e9,
            peak={"fp32": 163.4e12, "tf32": 653.7e12, "fp16": 1307.4e12, "bf16": 1307.4e12, "fp8": 2614.9e12},
            vector_flops=81.7e12,
            link_bytes_per_s=50e9,
            fabric_bytes_per_s=310e9,
            call_ns=7_000,
            delay_ns=10_000,
            gap_ns=2_200,
            host_factor=0.85,
        ),
    )
}

LAUNCH_QUEUE = 1_022  # launches that a stream holds before the next one blocks the host (1,024 less two of its own)
EVENT_NS = 1_600  # from the end of what an event stands for to the begin of what waited for it on another stream
WAKE_NS = 4_000  # from the end on the device to the return of the call that waited for it
SMALL_COPY_BYTES = 64 << 10  # from pageable memory, such a copy is staged at once and the call returns
COLLECTIVE_SLOWS = 0.06  # a collective takes some units: computation beside it takes that much longer
COPY_SETUP_NS = 1_200  # of any copy on the device, however small
