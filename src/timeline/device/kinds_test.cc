#include "timeline/device/kinds.h"

#include <gmock/gmock.h>

namespace fullbore::timeline {
namespace {

TEST(DeviceKindsTest, MatmulsAreClassifiedByTensorCores) {
  EXPECT_EQ(ClassifyKernel("volta_sgemm_128x64_nn"), Lane::kMatmul);
  EXPECT_EQ(ClassifyKernel("volta_scudnn_winograd_128x128_ldg1_ldg4_relu_tile148t_nt_v1"), Lane::kMatmul);
  EXPECT_EQ(ClassifyKernel("void cutlass::Kernel2<cutlass_80_simt_sgemm_128x32_8x5_nn_align1>(...)"),
            Lane::kMatmul);
  EXPECT_EQ(ClassifyKernel("volta_fp16_s884gemm_fp16_128x64_ldg8_f2f_nn"), Lane::kMatmulTensor);
  EXPECT_EQ(ClassifyKernel("ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_64x3_tn"),
            Lane::kMatmulTensor);
  EXPECT_EQ(ClassifyKernel("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1"),
            Lane::kMatmulTensor);
  EXPECT_EQ(ClassifyKernel("nvjet_tst_192x192_64x4_2x1_v_bz_coopB_bias_TNN"), Lane::kMatmulTensor);
  EXPECT_EQ(ClassifyKernel("void cudnn::cnn::wgrad_alg0_engine<float, 128, 6, 7, 3, 3, 5, false, 512>(...)"),
            Lane::kMatmul);
}

TEST(DeviceKindsTest, FunctorNamesInsideElementwiseKernelsDoNotMislead) {
  EXPECT_EQ(
      ClassifyKernel("void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor<float>>"),
      Lane::kElementwise);
  EXPECT_EQ(ClassifyKernel("void at::native::vectorized_elementwise_kernel<4, at::native::Convert<float>>"),
            Lane::kElementwise);
  EXPECT_EQ(ClassifyKernel("void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float>>"),
            Lane::kReduction);
}

TEST(DeviceKindsTest, OtherClassesByName) {
  EXPECT_EQ(ClassifyKernel("void pytorch_flash::flash_fwd_kernel<...>"), Lane::kAttention);
  EXPECT_EQ(ClassifyKernel("void multi_tensor_apply_kernel<TensorListMetadata<4>, AdamFunctor<float>>"),
            Lane::kOptimizer);
  EXPECT_EQ(ClassifyKernel("void cudnn::bn_bw_1C11_kernel_new<float, float, float2, 512, true, 1>"),
            Lane::kReduction);
  EXPECT_EQ(ClassifyKernel("triton_poi_fused_add_0"), Lane::kElementwise);
  EXPECT_EQ(ClassifyKernel("my_own_kernel"), Lane::kOtherCompute);
}

TEST(DeviceKindsTest, CollectivesOfOldAndNewNcclAndOfRccl) {
  EXPECT_EQ(ClassifyKernel("ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)"), Lane::kComm);
  EXPECT_EQ(ClassifyKernel("ncclDevKernel_SendRecv"), Lane::kComm);
  EXPECT_EQ(ClassifyKernel("rcclGenericKernel"), Lane::kComm);
}

TEST(DeviceKindsTest, CollectivesOfAnyLibrary) {
  for (const char* name : {
           "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(vllm::RankData*, vllm::RankSignals)",
           "void aiter::cross_device_reduce_2stage<__hip_bfloat16, 8>(aiter::RankData*)",
           "void sglang::cross_device_reduce_1stage<half, 2>(sglang::RankData*)",
           "void quickreduce::allreduce_prototype_twoshot<quickreduce::AllReduceTwoshot<CodecQ4>>()",
           "one_shot_all_reduce_kernel",
           "multimem_all_reduce_kernel",
           "two_shot_all_reduce_kernel_inplace",
           "multimem_all_gather_kernel",
           "void deep_ep::internode_ll::dispatch<true, 4, 32, 7168>(void*, float*, int*)",
           "void deep_ep::intranode::combine<__nv_bfloat16, 8, 768, 4096>()",
           "nvshmemi_transfer_quiet_kernel",
           "at::cuda::nvshmem_put",
           "void trtllm_allreduce::oneshot_allreduce_fusion_kernel_lamport<8>()",
           "void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_twoshot_sync<1>()",
           "void tensorrt_llm::kernels::moe_comm::moeAllToAllKernel()",
           "void mscclpp::allreducePacket<half>()",
           "oneccl_allreduce_small_buf",
           "ncclSymkDevKernel_AllReduce_RSxLD_AGxST_bf16(ncclSymkDevWorkArgs4K)",
           "void ncclKernel_x",
           "void transformer_engine::userbuffers_fp16_sum_inplace_gpu_mc<8>()",
       }) {
    EXPECT_EQ(ClassifyKernel(name), Lane::kComm) << name;
  }
}

TEST(DeviceKindsTest, ReductionsWithinADeviceAndComputationBesideCollectivesAreNone) {
  for (const char* name :
       {"void layernorm_block_all_reduce<float>()", "void softmaxWarpAllReduce<float, 32>()",
        "triton_poi_fused_all_gather_into_tensor_wait_tensor_0",
        "void gemm_reduce_scatter_persistent<half>()", "deep_ep::layout::get_dispatch_layout",
        "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float>>"}) {
    EXPECT_NE(ClassifyKernel(name), Lane::kComm) << name;
  }
}

TEST(DeviceKindsTest, WhatACollectiveDoesIsReadFromItsKernel) {
  EXPECT_EQ(CollectiveOfKernel("ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL"), "reduce_scatter");
  EXPECT_EQ(CollectiveOfKernel("ncclKernel_AllReduce_RING_LL_Sum_float"), "all_reduce");
  EXPECT_EQ(CollectiveOfKernel("void vllm::cross_device_reduce_1stage<half, 8>()"), "all_reduce");
  EXPECT_EQ(CollectiveOfKernel("void deep_ep::internode_ll::dispatch<true>()"), "all_to_all");
  EXPECT_EQ(CollectiveOfKernel("_allgather_base"), "all_gather");
  EXPECT_EQ(CollectiveOfKernel("ncclDevKernel_Broadcast_RING_LL"), "broadcast");
  EXPECT_EQ(CollectiveOfKernel("rcclGenericKernel"), "");
}

TEST(DeviceKindsTest, KernelsOfTritonExpertsAndComposableKernelHaveClasses) {
  for (const char* name : {"fused_moe_kernel", "_matmul_ogs_NNT_bf16xbf16xmxfp4_16x128x256x1_swiglu",
                           "triton_tem_fused_addmm_3", "triton_mm", "_w8a8_block_fp8_matmul",
                           "void deep_gemm::sm90_fp8_gemm_1d2d_impl<1>()", "void marlin::Marlin<half>()",
                           "void gptq_marlin_gemm<8>()", "xe_gemm_kernel<bf16>", "gemm_kernel<at::BFloat16>",
                           "ck::kernel_gemm_xdl_cshuffle_v3<ck::GridwiseGemm>", "aiter::fmoe_bf16_g1u1"}) {
    EXPECT_EQ(ClassifyKernel(name), Lane::kMatmulTensor) << name;
  }
  for (const char* name :
       {"mla::fwd_kernel", "_fwd_kernel_flash_mla", "void cutlass::device_kernel<flash::enable_sm90>",
        "_ZN7ck_tile6kentryILi1ENS_13FmhaFwdKernel", "micro_sdpa", "kernel_unified_attention_2d",
        "void flashinfer::BatchDecodeWithPagedKVCacheKernel<1>()", "triton_tem_fused_flex_attention_1"}) {
    EXPECT_EQ(ClassifyKernel(name), Lane::kAttention) << name;
  }
  EXPECT_EQ(ClassifyKernel("_ZN7ck_tile6kentryILi1ENS_12Rmsnorm2dFwd"), Lane::kReduction);
  EXPECT_EQ(ClassifyKernel("moe_sum_kernel"), Lane::kReduction);
  EXPECT_EQ(ClassifyKernel("moe_align_block_size_kernel"), Lane::kOtherCompute);
  EXPECT_EQ(ClassifyKernel("void gemv2T_kernel_val<int, int, __nv_bfloat16>"), Lane::kMatmul);
}

TEST(DeviceKindsTest, InductorsKernelsAreNotWhatTheyFused) {
  EXPECT_EQ(ClassifyKernel("triton_poi_fused__scaled_dot_product_flash_attention_clone_3"),
            Lane::kElementwise);
  EXPECT_EQ(ClassifyKernel("triton_per_fused_native_layer_norm_addmm_1"), Lane::kReduction);
  EXPECT_EQ(ClassifyKernel("triton_red_fused_convolution_mean_2"), Lane::kReduction);
}

TEST(DeviceKindsTest, WhatRocmCopiesWithKernelsIsACopy) {
  EXPECT_EQ(ClassifyKernel("__amd_rocclr_copyBuffer"), Lane::kD2d);
  EXPECT_EQ(ClassifyKernel("__amd_rocclr_copyBufferRectAligned"), Lane::kD2d);
  EXPECT_EQ(ClassifyKernel("__amd_rocclr_fillBufferAligned"), Lane::kMemset);
  EXPECT_EQ(ClassifyKernel("__amd_rocclr_gwsInit"), Lane::kOtherCompute);
}

TEST(DeviceKindsTest, CopiesOfIntelDevices) {
  EXPECT_EQ(ClassifyCopy("Memcpy M2D"), Lane::kH2dPageable);
  EXPECT_EQ(ClassifyCopy("Memcpy H2D"), Lane::kH2dPinned);
  EXPECT_EQ(ClassifyCopy("Memcpy D2M"), Lane::kD2hPageable);
  EXPECT_EQ(ClassifyCopy("Memcpy D2D"), Lane::kD2d);
}

TEST(DeviceKindsTest, CallsOfOneApi) {
  EXPECT_EQ(ClassifyCall("urEnqueueKernelLaunchWithArgsExp"), CallKind::kLaunch);
  EXPECT_EQ(ClassifyCall("urEnqueueCooperativeKernelLaunchExp"), CallKind::kLaunch);
  EXPECT_EQ(ClassifyCall("urEnqueueCommandBufferExp"), CallKind::kGraphLaunch);
  EXPECT_EQ(ClassifyCall("urEnqueueUSMMemcpy"), CallKind::kCopy);
  EXPECT_EQ(ClassifyCall("urEnqueueUSMFill"), CallKind::kMemset);
  EXPECT_EQ(ClassifyCall("urQueueFinish"), CallKind::kSync);
  EXPECT_EQ(ClassifyCall("urEventWait"), CallKind::kSync);
  EXPECT_EQ(ClassifyCall("urEnqueueEventsWaitWithBarrier"), CallKind::kOther)
      << "a queue waits, not the host";
  EXPECT_EQ(ClassifyCall("urUSMDeviceAlloc"), CallKind::kMemory);
  EXPECT_EQ(ClassifyCall("urUSMGetMemAllocInfo"), CallKind::kOther);
  EXPECT_EQ(ClassifyCall("zeCommandListAppendLaunchKernel"), CallKind::kLaunch);
  EXPECT_EQ(ClassifyCall("zeEventHostSynchronize"), CallKind::kSync);
  EXPECT_EQ(ClassifyCall("piextUSMEnqueueMemcpy"), CallKind::kCopy);
  EXPECT_TRUE(WaitsForEverything("urQueueFinish"));
  EXPECT_FALSE(WaitsForEverything("cudaEventSynchronize"));
}

TEST(DeviceKindsTest, CopiesByDirectionAndHostMemory) {
  EXPECT_EQ(ClassifyCopy("Memcpy HtoD (Pageable -> Device)"), Lane::kH2dPageable);
  EXPECT_EQ(ClassifyCopy("Memcpy HtoD (Pinned -> Device)"), Lane::kH2dPinned);
  EXPECT_EQ(ClassifyCopy("Memcpy DtoH (Device -> Pageable)"), Lane::kD2hPageable);
  EXPECT_EQ(ClassifyCopy("Memcpy DtoD (Device -> Device)"), Lane::kD2d);
  EXPECT_EQ(ClassifyCopy("Memset (Device)"), Lane::kMemset);
}

TEST(DeviceKindsTest, CallsOfCudaDriverAndHip) {
  EXPECT_EQ(ClassifyCall("cudaLaunchKernelExC_v11060"), CallKind::kLaunch);
  EXPECT_EQ(ClassifyCall("cuLaunchKernelEx"), CallKind::kLaunch);
  EXPECT_EQ(ClassifyCall("hipExtModuleLaunchKernel"), CallKind::kLaunch);
  EXPECT_EQ(ClassifyCall("cudaGraphLaunch"), CallKind::kGraphLaunch);
  EXPECT_EQ(ClassifyCall("cudaStreamSynchronize_v3020"), CallKind::kSync);
  EXPECT_EQ(ClassifyCall("cudaMemcpyAsync"), CallKind::kCopy);
  EXPECT_EQ(ClassifyCall("cudaMemcpy"), CallKind::kSync);
  EXPECT_EQ(ClassifyCall("cudaMalloc"), CallKind::kMemory);
  EXPECT_EQ(ClassifyCall("cudaMallocAsync"), CallKind::kOther);
  EXPECT_EQ(ClassifyCall("cudaEventQuery"), CallKind::kOther);
}

}  // namespace
}  // namespace fullbore::timeline
