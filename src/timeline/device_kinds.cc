#include "timeline/device_kinds.h"

namespace fullbore::timeline {
namespace {

struct Pattern {
  std::string_view text;
  Lane lane;
};

// The first that occurs in the name decides. Sources: kernel names of cuBLAS, cuDNN, CUTLASS, PyTorch ATen,
// FBGEMM, FlashAttention, Triton (inductor), Apex, hipBLASLt/Tensile and MIOpen as found in published traces.
constexpr Pattern kKernelPatterns[] = {
    {"elementwise_kernel", Lane::kElementwise},  // ATen: the functor's name follows and would mislead
    {"at::native::reduce_kernel", Lane::kReduction},
    {"multi_tensor_apply", Lane::kOptimizer},
    {"adam", Lane::kOptimizer},
    {"Adam", Lane::kOptimizer},
    {"adagrad", Lane::kOptimizer},
    {"fused_sgd", Lane::kOptimizer},
    {"flash", Lane::kAttention},
    {"fmha", Lane::kAttention},
    {"attention", Lane::kAttention},
    {"attn_fwd", Lane::kAttention},
    {"attn_bwd", Lane::kAttention},
    {"bn_fw", Lane::kReduction},
    {"bn_bw", Lane::kReduction},
    {"batch_norm", Lane::kReduction},
    {"BatchNorm", Lane::kReduction},
    {"layer_norm", Lane::kReduction},
    {"LayerNorm", Lane::kReduction},
    {"GroupNorm", Lane::kReduction},
    {"RowwiseMoments", Lane::kReduction},
    {"rms_norm", Lane::kReduction},
    {"splitKreduce", Lane::kMatmul},
    {"gemm", Lane::kMatmul},
    {"Gemm", Lane::kMatmul},
    {"gemv", Lane::kMatmul},
    {"Gemv", Lane::kMatmul},
    {"cutlass", Lane::kMatmul},
    {"xmma", Lane::kMatmul},
    {"nvjet", Lane::kMatmul},
    {"Cijk_", Lane::kMatmul},
    {"_mma_", Lane::kMatmul},
    {"cublasLt", Lane::kMatmul},
    {"s1688", Lane::kMatmul},
    {"s16816", Lane::kMatmul},
    {"h884", Lane::kMatmul},
    {"scudnn", Lane::kMatmul},
    {"hcudnn", Lane::kMatmul},
    {"convolve", Lane::kMatmul},
    {"conv2d", Lane::kMatmul},
    {"conv_", Lane::kMatmul},
    {"Conv", Lane::kMatmul},
    {"dgrad", Lane::kMatmul},
    {"wgrad", Lane::kMatmul},
    {"fprop", Lane::kMatmul},
    {"winograd", Lane::kMatmul},
    {"fft2d", Lane::kMatmul},
    {"softmax", Lane::kReduction},
    {"SoftMax", Lane::kReduction},
    {"Softmax", Lane::kReduction},
    {"reduce", Lane::kReduction},
    {"Reduce", Lane::kReduction},
    {"triton_red", Lane::kReduction},
    {"triton_per", Lane::kReduction},
    {"elementwise", Lane::kElementwise},
    {"Elementwise", Lane::kElementwise},
    {"triton_poi", Lane::kElementwise},
    {"CatArray", Lane::kElementwise},
    {"scalePackedTensor", Lane::kElementwise},
    {"pointwise", Lane::kElementwise},
    {"dropout", Lane::kElementwise},
};

// A matrix product runs on tensor cores if its name says so: mma instructions (s884: Volta, s1688: Turing,
// s16816: Ampere, warpgroup: Hopper), or types that have no other fast path.
constexpr std::string_view kTensorMarks[] = {"tensorop", "s884",   "h884",      "i8816", "s1688", "s16816",
                                             "h16816",   "h1688",  "warpgroup", "sm100", "nvjet", "bf16",
                                             "_fp16",    "f16f16", "_mma_",     "tf32",  "e4m3",  "_MI16x16",
                                             "_MI32x32", "wmma",   "imma",      "hmma",  "gmma",  "fp8"};
constexpr std::string_view kNoTensorMarks[] = {"simt", "volta_sgemm", "volta_scudnn", "ampere_sgemm",
                                               "maxwell_"};

bool Has(std::string_view name, std::string_view part) { return name.find(part) != std::string_view::npos; }

bool OnTensorCores(std::string_view name) {
  for (const auto mark : kNoTensorMarks) {
    if (Has(name, mark)) return false;
  }
  for (const auto mark : kTensorMarks) {
    if (Has(name, mark)) return true;
  }
  return false;
}

bool IsComm(std::string_view name) {
  return name.starts_with("nccl") || name.starts_with("rccl") || name.starts_with("msccl") ||
         name.starts_with("void nccl") || name.starts_with("oneccl");
}

}  // namespace

Lane ClassifyKernel(std::string_view name) {
  if (IsComm(name)) return Lane::kComm;
  if (Has(name, "emcpy") || Has(name, "emset")) return ClassifyCopy(name);
  for (const auto& pattern : kKernelPatterns) {
    if (!Has(name, pattern.text)) continue;
    return pattern.lane == Lane::kMatmul && OnTensorCores(name) ? Lane::kMatmulTensor : pattern.lane;
  }
  return Lane::kOtherCompute;
}

Lane ClassifyCopy(std::string_view name) {
  if (Has(name, "emset")) return Lane::kMemset;
  const bool pageable = Has(name, "ageable");
  if (Has(name, "HtoD") || Has(name, "Host-to-Device") || Has(name, "HostToDevice")) {
    return pageable ? Lane::kH2dPageable : Lane::kH2dPinned;
  }
  if (Has(name, "DtoH") || Has(name, "Device-to-Host") || Has(name, "DeviceToHost")) {
    return pageable ? Lane::kD2hPageable : Lane::kD2hPinned;
  }
  return Lane::kD2d;
}

CallKind ClassifyCall(std::string_view name) {
  if (name.starts_with("cuda") || name.starts_with("hip")) {
    name.remove_prefix(name[0] == 'c' ? 4 : 3);
  } else if (name.starts_with("cu")) {
    name.remove_prefix(2);
  }
  if (Has(name, "GraphLaunch")) return CallKind::kGraphLaunch;
  if (Has(name, "LaunchKernel") || Has(name, "LaunchCooperative") || Has(name, "ModuleLaunch") ||
      Has(name, "LaunchCooperativeKernel")) {
    return CallKind::kLaunch;
  }
  if (Has(name, "Synchronize")) return CallKind::kSync;
  if (name.starts_with("Memcpy")) return Has(name, "Async") ? CallKind::kCopy : CallKind::kSync;
  if (name.starts_with("Memset")) return CallKind::kMemset;
  if (name.starts_with("Malloc") || name.starts_with("Free") || name.starts_with("HostAlloc") ||
      name.starts_with("HostRegister") || name.starts_with("MemAlloc") || name.starts_with("MemFree") ||
      name.starts_with("MemHostAlloc") || name.starts_with("HostMalloc")) {
    return Has(name, "Async") ? CallKind::kOther : CallKind::kMemory;
  }
  return CallKind::kOther;
}

}  // namespace fullbore::timeline
