"""How long kernels take on a device: from FLOPs and bytes, the device's peaks and how much of them programs reach.

Efficiencies are drawn once for a program, around what cuBLAS, cuDNN and PyTorch's own kernels usually reach on large
shapes. Small shapes reach less by themselves: their tiles do not fill the device, and no kernel is shorter than a
floor.
"""

from __future__ import annotations

import random
from math import ceil

from . import names
from .hardware import Device
from .ops import Kernel

SIZE = {"fp32": 4, "tf32": 4, "fp16": 2, "bf16": 2, "fp8": 1, "uint8": 1, "int64": 8}
# Tiles of matrix kernels with how fast each is on a device that it fills.
TILES = ((256, 128, 1.0), (128, 128, 0.97), (128, 64, 0.88), (64, 64, 0.74), (32, 64, 0.5))
SPLIT_LIMIT = 8  # how often the sum over k is split where there are too few tiles
SPLIT_K = 256  # and no finer than that


class Silicon:
    def __init__(self, device: Device, seed: object) -> None:
        self.device = device
        draw = random.Random(f"silicon {seed}").uniform
        self.floor_ns = draw(1_500, 2_200)
        self.memory = draw(0.74, 0.88)
        amd = device.vendor == "amd"  # libraries reach less of a larger nominal peak
        self.reach = {
            "gemm fp32": draw(0.78, 0.92) * (0.8 if amd else 1),
            "gemm tf32": draw(0.62, 0.78) * (0.7 if amd else 1),
            "gemm 16": draw(0.58, 0.74) * (0.72 if amd else 1),
            "conv fp32": draw(0.6, 0.82) * (0.6 if amd else 1),
            "conv tf32": draw(0.42, 0.58) * (0.6 if amd else 1),
            "conv 16": draw(0.38, 0.55) * (0.6 if amd else 1),
            "attention": draw(0.45, 0.62) * (0.7 if amd else 1),
        }

    def _memory_ns(self, size: float) -> float:
        return 1e9 * size / (self.device.bytes_per_s * self.memory)

    def _matrix(self, kind: str, dtype: str, m: int, n: int, k: int, batch: int, size: float) -> tuple[float, float]:
        """Nanoseconds and fill of a matrix product of that shape: the fastest of the tiles that libraries have."""
        reach = self.reach[f"{kind} {dtype if dtype in ('fp32', 'tf32') else '16'}"]
        peak = self.device.peak[dtype]
        best = None
        for tile_m, tile_n, pace in TILES:
            tiles = ceil(m / tile_m) * ceil(n / tile_n) * batch
            split = min(SPLIT_LIMIT, max(1, k // SPLIT_K), max(1, self.device.units // tiles))
            blocks = tiles * split
            waves = ceil(blocks / self.device.units)
            # the last wave of many is not all lost: blocks start as others end
            fullness = blocks / ((waves if waves < 8 else blocks / self.device.units) * self.device.units)
            padded = 2.0 * tile_m * tile_n * tiles * k
            ns = 1e9 * padded / (peak * reach * pace * fullness)
            if best is None or ns < best[0]:
                best = (ns, min(1.0, blocks / self.device.units))
        return self.floor_ns + max(best[0], self._memory_ns(size)), best[1]

    def gemm(self, m: int, n: int, k: int, dtype: str, batch: int = 1, layout: str = "tn") -> Kernel:
        size = batch * (SIZE[dtype] * (m * k + k * n) + max(2, SIZE[dtype]) * m * n)  # FP8 is written in 16 bits
        ns, fill = self._matrix("gemm", dtype, m, n, k, batch, size)
        units = dtype != "fp32" or self.device.vendor == "amd"
        name = names.gemm(self.device, dtype, layout)
        return Kernel("gemm", name, ns, 2.0 * batch * m * n * k, size, fill, units)

    def conv(self, pixels: int, out: int, depth: int, dtype: str, way: str, size: float) -> Kernel:
        """As the matrix product that it is: pixels of the result x its channels, over `depth` inputs of each."""
        shape = {"fprop": (pixels, out, depth), "dgrad": (pixels, depth, out), "wgrad": (out, depth, pixels)}[way]
        ns, fill = self._matrix("conv", dtype, *shape, 1, size)
        units = dtype != "fp32" or self.device.vendor == "amd"
        name = names.conv(self.device, dtype, way)
        return Kernel("conv", name, ns, 2.0 * pixels * out * depth, size, fill, units)

    def attention(self, batch: int, heads: int, seq: int, width: int, dtype: str, backward: bool) -> Kernel:
        flops = 4.0 * batch * heads * seq * seq * width * (2.5 if backward else 1.0)
        size = SIZE[dtype] * batch * heads * seq * width * (8 if backward else 4)
        peak = self.device.peak[dtype]
        ns = self.floor_ns + max(1e9 * flops / (peak * self.reach["attention"]), self._memory_ns(size))
        name = names.attention(self.device, dtype, backward)
        return Kernel("attention", name, ns, flops, size, min(1.0, batch * heads * seq / 128 / self.device.units))

    def memory_bound(self, kind: str, name: str, size: float, flops: float = 0.0, reach: float = 1.0) -> Kernel:
        fill = min(1.0, size / (self.device.units * 65_536))
        return Kernel(kind, name, self.floor_ns + self._memory_ns(size) / reach, flops, size, fill)

    def pointwise(self, functor: str, numel: int, size: float, dtype: str) -> Kernel:
        return self.memory_bound("pointwise", names.pointwise(functor, dtype), size, numel)
