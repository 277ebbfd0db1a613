"""What kernels are called, by vendor, generation and number format, as profiles of such programs show them."""

from __future__ import annotations

from .hardware import Device
from .ops import TYPE_NAMES

C_TYPES = {"fp32": "float", "tf32": "float", "fp16": "__half", "bf16": "__nv_bfloat16"}


def gemm(device: Device, dtype: str, layout: str) -> str:
    if device.vendor == "amd":
        kind = {"fp32": "S_B", "tf32": "S_MX_B", "fp16": "HHS_BH", "bf16": "BBS_BH", "fp8": "F8BS_BH"}[dtype]
        side = {"tn": "Alik_Bljk", "nn": "Ailk_Bljk", "nt": "Ailk_Bjlk"}[layout]
        return f"Cijk_{side}_{kind}_Bias_HA_S_SAV_UserArgs_MT128x128x32_MI16x16x1_SN_LDSB1_AFC1_AFEM1_AFEM1_ASEM1"
    short = {"fp16": "fp16", "bf16": "bf16"}.get(dtype, "")
    if device.capability < (8, 0):
        return f"volta_sgemm_128x64_{layout}" if not short else f"volta_fp16_s884gemm_fp16_128x128_ldg8_f2f_{layout}"
    if device.capability < (9, 0):
        if dtype == "fp32":
            return f"ampere_sgemm_128x64_{layout}"
        if dtype == "tf32":
            name = f"cutlass_80_tensorop_s1688gemm_128x128_32x3_{layout}_align4"
            return f"void cutlass::Kernel<{name}>({name}::Params)"
        return f"ampere_{short}_s16816gemm_{short}_128x128_ldg8_f2f_stages_32x5_{layout}"
    if dtype == "fp32":
        name = f"cutlass_80_simt_sgemm_128x128_8x4_{layout}_align1"
        return f"void cutlass::Kernel2<{name}>({name}::Params)"
    formats = {"tf32": "f32f32_tf32f32_f32", "fp16": "f16f16_f16f32_f32", "bf16": "bf16bf16_bf16f32_f32"}
    formats = {**formats, "fp8": "e4m3bf16_e4m3f32_f32"}[dtype]
    return f"sm90_xmma_gemm_{formats}_{layout}_n_tilesize128x128x64_warpgroupsize2x1x1_execute_segment_k_off_kernel"


def conv(device: Device, dtype: str, way: str) -> str:
    if device.vendor == "amd":
        kind = {"fp32": "fp32", "tf32": "fp32", "fp16": "fp16", "bf16": "bf16"}[dtype]
        short = {"fprop": "fwd", "dgrad": "bwd", "wgrad": "wrw"}[way]
        return f"igemm_{short}_gtcx3_nhwc_{kind}_bx0_ex1_bt128x128x16_wt32x32x8_ws1x1_wr2x2_ta1x8x4x1_1x4x1x64"
    if dtype == "fp32":
        generation = "volta" if device.capability < (8, 0) else "ampere"
        return {
            "fprop": f"{generation}_scudnn_128x64_relu_interior_nn_v1",
            "dgrad": "void cudnn::detail::dgrad_engine<float, 512, 6, 5, 3, 3, 3, false>(int, int, int, float const*)",
            "wgrad": "void cudnn::cnn::wgrad_alg0_engine<float, 128, 6, 7, 3, 3, 5, false, 512>(int, int, int)",
        }[way]
    if device.capability < (8, 0):
        return f"volta_fp16_s884cudnn_fp16_256x64_ldg8_{way}_f2f_exp_interior_nhwc2nchw_tn_v1"
    formats = {"tf32": "tf32f32_tf32f32_f32", "fp16": "f16f16_f16f32_f32", "bf16": "bf16bf16_bf16f32_f32"}[dtype]
    tensor = "16x8x8" if dtype == "tf32" else "16x8x16"
    return (
        f"sm80_xmma_{way}_implicit_gemm_{formats}_nhwckrsc_nhwc_tilesize128x128x32_stage4_warpsize2x2x1_g1_"
        f"tensor{tensor}_execute_kernel__5x_cudnn"
    )


def attention(device: Device, dtype: str, backward: bool) -> str:
    if device.vendor == "amd":
        return "bwd_kernel_fuse" if backward else "attn_fwd"
    if dtype == "fp32" or device.capability < (8, 0):
        letter = "B" if backward else "F"
        kind = "f32" if dtype == "fp32" else "f16"
        return f"fmha_cutlass{letter}_{kind}_aligned_64x64_rf_sm{device.capability[0]}0(AttentionKernel::Params)"
    element = "cutlass::bfloat16_t" if dtype == "bf16" else "cutlass::half_t"
    which = "bwd_dq_dk_dv_loop_seqk_parallel" if backward else "fwd"
    return f"void pytorch_flash::flash_{which}_kernel<Flash_{which[:3]}_kernel_traits<64, 128, 128, 4, {element}>>"


def pointwise(functor: str, dtype: str) -> str:
    of = TYPE_NAMES.get(dtype, "unsigned char")
    return f"void at::native::vectorized_elementwise_kernel<4, at::native::{functor}<{of}>, std::array<char*, 3ul> >"


def triton(number: int, functors: list[str]) -> str:
    return f"triton_poi_fused_{'_'.join(functors[:5])}_{number}"


def layer_norm(dtype: str) -> str:
    of = TYPE_NAMES[dtype]
    return f"void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<{of}, float>(int, float, {of} const*)"


def layer_norm_backward(dtype: str) -> tuple[str, str]:
    of = TYPE_NAMES[dtype]
    where = "void at::native::(anonymous namespace)::"
    return (
        f"{where}layer_norm_grad_input_kernel_vectorized<{of}, float>({of} const*, {of} const*)",
        f"{where}GammaBetaBackwardCUDAKernelTemplate<{of}, float, 32, 1, 32, true>(long, long)",
    )


def batch_norm(device: Device, dtype: str, backward: bool) -> str:
    if device.vendor == "amd":
        return "MIOpenBatchNormBwdSpatial" if backward else "MIOpenBatchNormFwdTrainSpatial"
    of = C_TYPES[dtype]
    which = "bw_1C11_kernel_new" if backward else "fw_tr_1C11_kernel_NCHW"
    return f"void cudnn::bn_{which}<{of}, float, 512, true, 1>(cudnnTensorStruct, {of} const*)"


def group_norm(dtype: str, backward: bool) -> str:
    of = TYPE_NAMES[dtype]
    which = "ComputeInternalGradientsCUDAKernel" if backward else "RowwiseMomentsCUDAKernel"
    return f"void at::native::(anonymous namespace)::{which}<{of}>(long, float, {of} const*)"


def softmax(dtype: str, backward: bool) -> str:
    of = TYPE_NAMES[dtype]
    which = "Backward" if backward else "Forward"
    return f"void at::native::(anonymous namespace)::cunn_SoftMax{which}<4, {of}, float, float>({of}*, {of} const*)"


def reduction(dtype: str) -> str:
    of = TYPE_NAMES[dtype]
    return f"void at::native::reduce_kernel<512, 1, at::native::ReduceOp<{of}, at::native::sum_functor<{of}, float> > >"


def largest(dtype: str) -> str:
    of = TYPE_NAMES[dtype]
    return f"void at::native::reduce_kernel<512, 1, at::native::ReduceOp<{of}, at::native::MaxNanFunctor<{of}> > >"


def embedding(dtype: str, backward: bool) -> str:
    of = TYPE_NAMES[dtype]
    if backward:
        return f"void at::native::(anonymous namespace)::compute_grad_weight<{of}, long>(long*, {of}*)"
    return f"void at::native::(anonymous namespace)::indexSelectLargeIndex<{of}, long, unsigned int, 2, 2, -2, true>"


def optimizer(impl: str, functor: str) -> str:
    if impl == "loop":
        return pointwise(functor, "fp32")
    where = "at::native::(anonymous namespace)::"
    lists = "FusedOptimizerTensorListMetadata<4>" if impl == "fused" else "TensorListMetadata<3>"
    return f"void {where}multi_tensor_apply_kernel<{where}{lists}, {where}{functor}<float, 4> >"


def all_reduce(device: Device, dtype: str) -> str:
    if device.vendor == "amd" or device.capability >= (9, 0):
        return "ncclDevKernel_Generic_4(ncclDevKernelArgsStorage<4096ul>)"
    if device.capability >= (8, 0):
        of = {"fp16": "f16", "bf16": "bf16"}.get(dtype, "f32")
        return f"ncclDevKernel_AllReduce_Sum_{of}_RING_LL(ncclDevComm*, unsigned long, ncclWork*)"
    return "ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)"
