"""Kernels: what each does (FLOPs, bytes, blocks) and how it is named on each architecture."""

from dataclasses import dataclass

# cuBLAS's tiles, and what they reach of the largest one's rate: drawn once by hand after cuBLAS's own choices
TILES = ((128, 128, 1.0), (128, 64, 0.9), (64, 64, 0.72), (32, 32, 0.4))


@dataclass(frozen=True, eq=False)
class Kernel:
    """One kernel: compared by identity, as its time is computed once for each object."""

    name: str
    kind: str  # gemm, conv, attention, pointwise, norm, reduce, gather, optimizer, copy, memset
    flops: float = 0.0
    reads: float = 0.0  # bytes
    writes: float = 0.0
    blocks: int = 1
    threads: int = 128
    math: str = "fp32"
    shape_factor: float = 1.0  # of the attainable rate: tile size, depth, alignment


def pointwise(functor: str, reads: float, writes: float, dtype: str = "float", arity: int = 2) -> Kernel:
    """PyTorch's vectorized elementwise kernel: 128 threads, four elements each."""
    array = f"at::detail::Array<char*, {arity}>"
    inner = f"at::native::{functor}"
    name = f"void at::native::vectorized_elementwise_kernel<4, {inner}, {array} >(int, {inner}, {array})"
    size = 2 if "16" in dtype or "Half" in dtype else 4
    blocks = max(1, int(max(writes, reads / max(arity - 1, 1)) / size / 512))
    return Kernel(name, "pointwise", 0.0, reads, writes, blocks, 128)


def reduction(name: str, reads: float, writes: float, blocks: int, kind: str = "reduce") -> Kernel:
    """A kernel bound by memory that reduces or normalizes."""
    return Kernel(name, kind, 0.0, reads, writes, max(1, blocks), 256)


def gemm_tile(rows: int, columns: int, batch: int, sms: int) -> tuple:
    """(blocks, tile, factor): the tile with the least time, waves of the SMs included."""
    best = None
    for height, width, reach in TILES:
        blocks = -(-rows // height) * -(-columns // width) * batch
        cost = -(-blocks // sms) * height * width / reach
        if best is None or cost < best[0]:
            waste = rows * columns * batch / (blocks * height * width)
            best = (cost, blocks, (height, width), reach * waste)
    return best[1:]


def gemm(machine, rows: int, columns: int, depth: int, size: int, math: str, batch: int = 1, kind="nn") -> Kernel:
    """A matrix product of cuBLAS (rocBLAS): size is the bytes of an element."""
    blocks, tile, reach = gemm_tile(rows, columns, batch, machine.sms)
    if blocks * 2 <= machine.sms and depth >= 1024:  # split-K
        blocks *= min(depth // 512, machine.sms // blocks)
    reach *= depth / (depth + 64.0)  # prologue and epilogue of the main loop
    if math == "half" and (rows % 8 or columns % 8 or depth % 8):
        reach *= 0.5  # NVIDIA's guide on matrix products: unaligned shapes lose tensor-core rate
    reads = batch * (rows * depth + depth * columns) * size
    name = gemm_name(machine.arch, math, size, tile, kind)
    flops = 2.0 * batch * rows * columns * depth
    return Kernel(name, "gemm", flops, reads, batch * rows * columns * size, blocks, 256, math, reach)


def gemm_name(arch: str, math: str, size: int, tile: tuple, layout: str) -> str:
    """As the libraries name their kernels on each architecture."""
    extent = f"{tile[0]}x{tile[1]}"
    if arch == "cdna":
        kind = {"fp32": "SB", "tf32": "SX", "half": "BBS_BH"}[math]
        return f"Cijk_Ailk_Bljk_{kind}_MT{extent}x32_MI16x16x16x1_SN_1LDSB0_GRVW8_GSU1_WG64_4_1"
    if math == "half" and arch == "volta":
        return f"volta_fp16_s884gemm_fp16_{extent}_ldg8_f2f_{layout}"
    if math == "half" and arch == "hopper":
        shape = f"tilesize{extent}x64_warpgroupsize1x1x1"
        return f"sm90_xmma_gemm_bf16bf16_bf16f32_f32_{layout}_n_{shape}_execute_segment_k_off_kernel__5x_cublas"
    if math == "half":
        return f"ampere_bf16_s16816gemm_bf16_{extent}_ldg8_f2f_stages_64x3_{layout}"
    if math == "tf32":
        return f"void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_{extent}_16x5_{layout}_align4>(Params)"
    return f"{'volta' if arch == 'volta' else 'ampere'}_sgemm_{extent}_{layout}"


def conv(machine, way: str, pixels: int, fan: int, outputs: int, traffic: tuple, math: str) -> Kernel:
    """A convolution as implicit product; way is fprop, dgrad or wgrad; traffic is (reads, writes) in bytes."""
    blocks, tile, reach = gemm_tile(pixels, outputs, 1, machine.sms)
    if way == "wgrad" and blocks * 2 <= machine.sms:
        blocks = machine.sms  # splits the sum over pixels
    reach *= fan / (fan + 64.0) * (0.8 if way == "wgrad" else 1.0)
    name = conv_name(machine.arch, way, math, tile)
    return Kernel(name, "conv", 2.0 * pixels * fan * outputs, *traffic, blocks, 256, math, reach)


def conv_name(arch: str, way: str, math: str, tile: tuple) -> str:
    """cuDNN's names, or MIOpen's."""
    extent = f"{tile[0]}x{tile[1]}"
    if arch == "cdna":
        word = {"fprop": "fwd", "dgrad": "bwd", "wgrad": "wrw"}[way]
        kind = "bf16" if math == "half" else "fp32"
        return f"igemm_{word}_gtcx3_nhwc_{kind}_bx0_ex1_bt{extent}x16_wt16x16x4_ws1x1_wr2x2"
    if math == "half" and arch == "volta":
        return f"volta_fp16_s884cudnn_fp16_{extent}_ldg8_{way}_f2f_exp_small_nhwc_tn_v1"
    if math == "fp32":
        if way == "fprop":
            return f"{'volta' if arch == 'volta' else 'ampere'}_scudnn_{extent}_relu_medium_nn_v1"
        if way == "dgrad":
            return "void cudnn::detail::dgrad_engine<float, 512, 6, 5, 3, 3, 3, false>(int, int, int, float const*)"
        return "void cudnn::cnn::wgrad_alg0_engine<float, 128, 6, 7, 3, 3, 5, false, 512>(int, int, int, float const*)"
    kind = "f16f16_f16f32_f32_nhwckrsc_nhwc" if math == "half" else "tf32f32_tf32f32_f32_nhwckrsc_nchw"
    return f"sm80_xmma_{way}_implicit_gemm_{kind}_tilesize{extent}x32_stage4_warpsize2x2x1_g1_kernel_cudnn"
