"""Devices: public peak figures, and what one machine of a kind reaches of them."""

import math
import random
from dataclasses import dataclass

from second.kernels import Kernel


@dataclass(frozen=True)
class Spec:
    """A device as its data sheet has it."""

    key: str
    name: str  # as cudaGetDeviceProperties has it
    arch: str
    fp32: float  # TFLOP/s, vector units (MI300X: matrix units, the same figure)
    tf32: float  # TFLOP/s, dense
    half: float  # TFLOP/s, dense, 16 bit
    memory: float  # GB/s
    sms: int
    cache: float  # MB of the last level
    pcie: float  # GB/s, one way, what pinned copies reach at best
    link: float  # GB/s, bus bandwidth of a large all-reduce (nccl-tests) in one node
    gib: int
    capability: tuple
    shared: int  # bytes of shared memory per SM


# Peaks: NVIDIA data sheets of V100, A100, H100, L4, A10; AMD data sheet of MI300X. Dense figures throughout.
# PCIe: 3.0 x16 reaches 12 to 13, 4.0 x16 24 to 26, 5.0 x16 about 50 GB/s.
# Links: nccl-tests tables (A100 230 to 250, H100 460 to 480 with NVSwitch; devices without NVLink stay with PCIe).
SPECS = {
    "V100": Spec("V100", "Tesla V100-SXM2-32GB", "volta", 15.7, 0, 125, 900, 80, 6, 12.5, 130, 32, (7, 0), 98304),
    "A100": Spec("A100", "NVIDIA A100-SXM4-80GB", "ampere", 19.5, 156, 312, 2039, 108, 40, 25, 235, 80, (8, 0), 167936),
    "H100": Spec("H100", "NVIDIA H100 80GB HBM3", "hopper", 67, 494, 989, 3350, 132, 50, 50, 400, 80, (9, 0), 233472),
    "L4": Spec("L4", "NVIDIA L4", "ada", 30.3, 60, 121, 300, 58, 48, 24, 14, 24, (8, 9), 102400),
    "A10": Spec("A10", "NVIDIA A10", "ampere", 31.2, 62.5, 125, 600, 72, 6, 24, 14, 24, (8, 6), 102400),
    "MI300X": Spec(
        "MI300X", "AMD Instinct MI300X", "cdna", 163.4, 653, 1307, 5300, 304, 256, 50, 310, 192, (9, 4), 65536
    ),
}


FEED = 0.6  # drawn by hand: share of the SMs that keeps the memory busy


@dataclass(frozen=True)
class Usage:
    """What a kernel takes: its time alone, and its shares of the SMs and of the memory's bandwidth."""

    time: float  # ns
    share: float
    need: float  # share of the SMs with which it is as fast as alone
    band: float


class Hardware:
    """One machine: a device, its host's bus, and drawn efficiencies."""

    def __init__(self, key: str, seed: str):
        draw = random.Random(seed)
        self.spec = SPECS[key]
        # drawn: what libraries reach of the peak with large shapes: nearly all of it on vector units (Winograd's
        # convolutions do more with less), less on tensor cores. ResNet-50 comes out as published for each device.
        self.reach = {
            ("gemm", "fp32"): draw.uniform(0.75, 0.92),
            ("conv", "fp32"): draw.uniform(0.95, 1.30),
            ("attention", "fp32"): draw.uniform(0.35, 0.60),
            ("gemm", "tensor"): draw.uniform(0.50, 0.80),
            ("conv", "tensor"): draw.uniform(0.40, 0.65),
            ("attention", "tensor"): draw.uniform(0.25, 0.50),
        }
        self.memory_reach = draw.uniform(0.72, 0.90)  # drawn: STREAM-like kernels reach 75 to 90 %
        self.cache_gain = draw.uniform(1.2, 1.8)  # drawn: tensors that fit into half of the last-level cache
        amd = self.spec.arch == "cdna"  # its kernels follow each other without a gap, and take longer for it (traces)
        self.floor = draw.uniform(2500, 4000) if amd else draw.uniform(1100, 2000)  # drawn: an empty kernel's time, ns
        self.gap = (
            draw.uniform(5, 60) if amd else draw.uniform(700, 1400)
        )  # drawn: between kernels, about 1 us (traces)
        self.node_gap = self.gap * draw.uniform(0.45, 0.85)  # drawn: the same between nodes of a graph
        self.graph_launch = draw.uniform(6e3, 12e3)  # drawn: cudaGraphLaunch on the host, ns
        self.graph_node = draw.uniform(5, 250)  # drawn: more of it for each node; near 0 for straight lines since 12.6
        self.arrival = draw.uniform(3000, 5500)  # drawn: from within the launch call to the first possible start
        self.pinned = self.spec.pcie * draw.uniform(0.80, 0.97)  # drawn, GB/s
        self.pageable = min(self.pinned * draw.uniform(0.25, 0.70), draw.uniform(4.0, 11.0))  # drawn: host memcpy
        self.copy_latency = draw.uniform(1200, 2500)  # drawn, ns
        self._usages = {}

    def usage(self, kernel: Kernel) -> Usage:
        """Time alone and shares of a kernel, computed once."""
        found = self._usages.get(kernel)
        if found is None:
            found = self._usages[kernel] = self._measure(kernel)
        return found

    def _peak(self, kernel: Kernel) -> float:
        """FLOP per ns that a kernel of this kind reaches when all SMs are busy."""
        peak = {"fp32": self.spec.fp32, "tf32": self.spec.tf32, "half": self.spec.half}[kernel.math]
        units = "fp32" if kernel.math == "fp32" else "tensor"
        return peak * 1e3 * self.reach[kernel.kind, units] * kernel.shape_factor

    def _bandwidth(self, kernel: Kernel) -> float:
        """Bytes per ns that this kernel reaches: fewer with few blocks, more when it stays in the cache."""
        moved = kernel.reads + kernel.writes
        cached = self.cache_gain if moved < self.spec.cache * 0.5e6 else 1.0
        feeding = min(1.0, kernel.blocks / (FEED * self.spec.sms))
        return self.spec.memory * self.memory_reach * cached * max(feeding, 1.0 / self.spec.sms)

    def _measure(self, kernel: Kernel) -> Usage:
        sms = self.spec.sms
        waves = math.ceil(kernel.blocks / sms)
        filled = kernel.blocks / (waves * sms)  # the last wave's tail
        compute = kernel.flops / (self._peak(kernel) * filled) if kernel.flops else 0.0
        moved = kernel.reads + kernel.writes
        memory = moved / self._bandwidth(kernel) if moved else 0.0
        time = self.floor + max(compute, memory)
        per_sm = 2048 // max(kernel.threads, 64)  # resident blocks: 2,048 threads per SM
        resident = sms * (2 if kernel.kind in ("gemm", "conv", "attention") else per_sm)
        share = min(1.0, max(kernel.blocks / resident, 0.01))
        need = share * (FEED if memory > compute else 1.0)
        return Usage(time, share, need, min(1.0, moved / time / self.spec.memory))
