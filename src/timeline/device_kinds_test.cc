#include "timeline/device_kinds.h"

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
