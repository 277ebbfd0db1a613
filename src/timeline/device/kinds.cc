#include "timeline/device/kinds.h"

#include <algorithm>
#include <cctype>

namespace fullbore::timeline {
namespace {

bool Has(std::string_view name, std::string_view part) { return name.find(part) != std::string_view::npos; }

struct Pattern {
  std::string_view text;
  Lane lane;
};

// The first that occurs in the name decides. Sources: kernel names of cuBLAS, cuDNN, CUTLASS, PyTorch ATen,
// FBGEMM, FlashAttention, FlashInfer, Triton (inductor, vLLM, SGLang), Marlin, Apex, hipBLASLt/Tensile, MIOpen,
// Composable Kernel, AITER and oneDNN as found in published traces.
constexpr Pattern kKernelPatterns[] = {
    {"elementwise_kernel", Lane::kElementwise},  // ATen: the functor's name follows and would mislead
    {"at::native::reduce_kernel", Lane::kReduction},
    // Inductor: the names of the operators that it fused follow and would mislead, too.
    {"triton_red_", Lane::kReduction},
    {"triton_per_", Lane::kReduction},
    {"triton_poi_", Lane::kElementwise},
    {"triton_for_", Lane::kElementwise},
    {"multi_tensor_apply", Lane::kOptimizer},
    {"adam", Lane::kOptimizer},
    {"Adam", Lane::kOptimizer},
    {"adagrad", Lane::kOptimizer},
    {"fused_sgd", Lane::kOptimizer},
    {"moe_align", Lane::kOtherCompute},  // sorts tokens by their experts
    {"MoeSorting", Lane::kOtherCompute},
    {"moe_sum", Lane::kReduction},
    {"flash", Lane::kAttention},
    {"fmha", Lane::kAttention},
    {"Fmha", Lane::kAttention},
    {"attention", Lane::kAttention},
    {"attn_fwd", Lane::kAttention},
    {"attn_bwd", Lane::kAttention},
    {"Attention", Lane::kAttention},
    {"WithPagedKVCache", Lane::kAttention},  // FlashInfer
    {"WithRaggedKVCache", Lane::kAttention},
    {"sdpa", Lane::kAttention},
    {"mla::", Lane::kAttention},
    {"mla_", Lane::kAttention},
    {"bn_fw", Lane::kReduction},
    {"bn_bw", Lane::kReduction},
    {"batch_norm", Lane::kReduction},
    {"BatchNorm", Lane::kReduction},
    {"layer_norm", Lane::kReduction},
    {"LayerNorm", Lane::kReduction},
    {"GroupNorm", Lane::kReduction},
    {"RowwiseMoments", Lane::kReduction},
    {"rms_norm", Lane::kReduction},
    {"rmsnorm", Lane::kReduction},
    {"RMSNorm", Lane::kReduction},
    {"RmsNorm", Lane::kReduction},
    {"Rmsnorm", Lane::kReduction},
    {"layernorm", Lane::kReduction},
    {"Layernorm", Lane::kReduction},
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
    {"triton_tem_", Lane::kMatmul},  // inductor's templates: products, convolutions, and attention above
    {"triton_mm", Lane::kMatmul},
    {"triton_bmm", Lane::kMatmul},
    {"matmul", Lane::kMatmul},
    {"Matmul", Lane::kMatmul},
    {"flatmm", Lane::kMatmul},
    {"Flatmm", Lane::kMatmul},
    {"fused_moe", Lane::kMatmul},
    {"FusedMoe", Lane::kMatmul},
    {"fmoe", Lane::kMatmul},
    {"marlin", Lane::kMatmul},
    {"Marlin", Lane::kMatmul},
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
    {"elementwise", Lane::kElementwise},
    {"Elementwise", Lane::kElementwise},
    {"CatArray", Lane::kElementwise},
    {"scalePackedTensor", Lane::kElementwise},
    {"pointwise", Lane::kElementwise},
    {"dropout", Lane::kElementwise},
};

// A matrix product runs on tensor cores if its name says so: mma instructions (s884: Volta, s1688: Turing,
// s16816: Ampere, warpgroup: Hopper, xdl and MI: AMD's matrix cores), types that have no other fast path, or a
// compiler or library that makes products for nothing else (Triton's dot, the kernels of quantised models).
constexpr std::string_view kTensorMarks[] = {
    "tensorop", "s884",       "h884",          "i8816",    "s1688",    "s16816",   "h16816",
    "h1688",    "warpgroup",  "sm100",         "nvjet",    "bf16",     "_fp16",    "f16f16",
    "_mma_",    "tf32",       "e4m3",          "_MI16x16", "_MI32x32", "wmma",     "imma",
    "hmma",     "gmma",       "fp8",           "xdl",      "mfma",     "BFloat16", "bfloat16",
    "triton",   "matmul_ogs", "fused_moe",     "FusedMoe", "fmoe",     "marlin",   "Marlin",
    "flatmm",   "Flatmm",     "matmul_kernel", "w8a8",     "a8w8",     "fp4"};
// Products of a matrix and a vector are bound by memory, whatever their type.
constexpr std::string_view kNoTensorMarks[] = {"simt",     "volta_sgemm", "volta_scudnn", "ampere_sgemm",
                                               "maxwell_", "gemv",        "Gemv"};

bool OnTensorCores(std::string_view name) {
  for (const auto mark : kNoTensorMarks) {
    if (Has(name, mark)) return false;
  }
  for (const auto mark : kTensorMarks) {
    if (Has(name, mark)) return true;
  }
  return false;
}

// ---- what moves data between devices ----

struct CollectivePattern {
  std::string_view text;
  std::string_view kind;  // as PyTorch calls it; empty where the name does not say
};

// Libraries whose kernels do nothing else, by how a name begins.
constexpr std::string_view kCollectiveLibraries[] = {"nccl", "rccl", "msccl", "oneccl", "hcom_", "hccl"};

// What else is communication wherever it stands in a name: custom all-reduces (vLLM, SGLang, AITER, TensorRT-LLM,
// FlashInfer, quick reduce), PyTorch's symmetric memory, DeepEP, NVSHMEM, MSCCL++, the userbuffers of Transformer
// Engine, XLA. In small letters, without separators: one entry for all_reduce, allReduce, AllReduce and all-reduce.
constexpr CollectivePattern kCollectives[] = {
    {"reducescatter", "reduce_scatter"},
    {"allgather", "all_gather"},
    {"alltoall", "all_to_all"},
    {"all2all", "all_to_all"},
    {"allreduce", "all_reduce"},
    {"crossdevicereduce", "all_reduce"},
    {"quickreduce", "all_reduce"},
    {"deepep::intranode", "all_to_all"},
    {"deepep::internode", "all_to_all"},
    {"deepep::elastic", "all_to_all"},
    {"sendrecv", "send_recv"},
    {"mscclpp", ""},
    {"nvshmem", ""},
    {"rocshmem", ""},
    {"ishmem", ""},
    {"userbuffers", ""},
    {"putsignalkernel", ""},
    {"waitsignalkernel", ""},
};
// Only of the libraries whose kernels are collectives anyway.
constexpr CollectivePattern kOfLibraries[] = {{"broadcast", "broadcast"}, {"reduce", "reduce"}};

// The name as the patterns know names, as far as it fits: what tells a kernel stands at its begin.
class Plain {
 public:
  explicit Plain(std::string_view name) {
    for (const char c : name) {
      if (size_ == sizeof(text_)) break;
      if (c == '_' || c == '-') continue;
      text_[size_++] = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    }
  }
  std::string_view text() const { return {text_, size_}; }

 private:
  char text_[200];
  size_t size_ = 0;
};

// Among the threads of one device, and what computes beside it.
bool IsWithinDevice(std::string_view plain, size_t at) {
  const std::string_view before = plain.substr(0, at);
  return before.ends_with("block") || before.ends_with("warp") || Has(plain, "gemm") || Has(plain, "matmul");
}

const CollectivePattern* CollectiveIn(std::string_view plain) {
  for (const auto& pattern : kCollectives) {
    const size_t at = plain.find(pattern.text);
    if (at != std::string_view::npos && !IsWithinDevice(plain, at)) return &pattern;
  }
  return nullptr;
}

// Inductor names its kernels after what they stand beside: "triton_poi_fused_all_gather_into_tensor_wait_tensor_0".
bool IsComm(std::string_view name) {
  if (IsOfCollectiveLibrary(name)) return true;
  return !name.starts_with("triton_") && CollectiveIn(Plain(name).text()) != nullptr;
}

// What ROCm copies and fills with kernels of its own.
bool IsCopy(std::string_view name) {
  return Has(name, "emcpy") || Has(name, "emset") || Has(name, "rocclr_copyBuffer") ||
         Has(name, "rocclr_copyImage") || Has(name, "rocclr_fillBuffer") || Has(name, "rocclr_fillImage");
}

}  // namespace

Lane ClassifyKernel(std::string_view name) {
  if (IsComm(name)) return Lane::kComm;
  if (IsCopy(name)) return ClassifyCopy(name);
  for (const auto& pattern : kKernelPatterns) {
    if (!Has(name, pattern.text)) continue;
    return pattern.lane == Lane::kMatmul && OnTensorCores(name) ? Lane::kMatmulTensor : pattern.lane;
  }
  return Lane::kOtherCompute;
}

bool IsOfCollectiveLibrary(std::string_view kernel) {
  if (kernel.starts_with("void ")) kernel.remove_prefix(5);
  if (kernel.starts_with("mscclpp")) return false;  // not MSCCL, whose successor it is
  return std::ranges::any_of(kCollectiveLibraries,
                             [&](std::string_view library) { return kernel.starts_with(library); });
}

std::string_view CollectiveOfKernel(std::string_view name) {
  const Plain plain(name);
  if (const CollectivePattern* pattern = CollectiveIn(plain.text())) return pattern->kind;
  for (const auto& pattern : kOfLibraries) {
    if (Has(plain.text(), pattern.text)) return pattern.kind;
  }
  return {};
}

// CUDA and HIP write "HtoD (Pageable -> Device)"; Intel's profiler one letter for each side: M is memory that the
// driver does not know, as malloc gives it, H is the host's USM, which is pinned.
Lane ClassifyCopy(std::string_view name) {
  if (Has(name, "emset") || Has(name, "rocclr_fill")) return Lane::kMemset;
  if (Has(name, "M2D")) return Lane::kH2dPageable;
  if (Has(name, "D2M")) return Lane::kD2hPageable;
  if (Has(name, "H2D")) return Lane::kH2dPinned;
  if (Has(name, "D2H")) return Lane::kD2hPinned;
  const bool pageable = Has(name, "ageable");
  if (Has(name, "HtoD") || Has(name, "Host-to-Device") || Has(name, "HostToDevice")) {
    return pageable ? Lane::kH2dPageable : Lane::kH2dPinned;
  }
  if (Has(name, "DtoH") || Has(name, "Device-to-Host") || Has(name, "DeviceToHost")) {
    return pageable ? Lane::kD2hPageable : Lane::kD2hPinned;
  }
  return Lane::kD2d;
}

namespace {

// oneAPI: the Unified Runtime ("urEnqueueUSMMemcpy"), SYCL's plugin interface before it ("piEnqueueKernelLaunch") and
// Level Zero below both ("zeCommandListAppendLaunchKernel").
bool IsOneApi(std::string_view name) {
  return name.size() > 2 && std::isalpha(static_cast<unsigned char>(name[2])) != 0 &&
         (name.starts_with("ur") || name.starts_with("pi") || name.starts_with("ze"));
}

CallKind ClassifyOneApi(std::string_view name) {
  if (Has(name, "CommandBuffer") && Has(name, "Enqueue")) return CallKind::kGraphLaunch;
  if (Has(name, "KernelLaunch") || Has(name, "LaunchKernel") || Has(name, "LaunchCooperative"))
    return CallKind::kLaunch;
  if (Has(name, "QueueFinish") || Has(name, "EventWait") || Has(name, "EventsWait") ||
      Has(name, "Synchronize"))
    return Has(name, "Enqueue") ? CallKind::kOther : CallKind::kSync;  // enqueued, a stream waits
  if (Has(name, "Fill") || Has(name, "Memset")) return CallKind::kMemset;
  if (Has(name, "Memcpy") || Has(name, "MemBuffer") || Has(name, "MemoryCopy") || Has(name, "MemImage"))
    return Has(name, "Create") ? CallKind::kMemory : CallKind::kCopy;
  if (Has(name, "Alloc") || Has(name, "USMFree") || Has(name, "MemFree") || Has(name, "USMPoolFree"))
    return Has(name, "Enqueue") || Has(name, "Get") ? CallKind::kOther : CallKind::kMemory;
  return CallKind::kOther;
}

}  // namespace

CallKind ClassifyCall(std::string_view name) {
  if (IsOneApi(name)) return ClassifyOneApi(name);
  if (name.starts_with("cuda") || name.starts_with("hip")) {
    name.remove_prefix(name[0] == 'c' ? 4 : 3);
  } else if (name.starts_with("cu")) {
    name.remove_prefix(2);
  }
  if (Has(name, "GraphLaunch")) return CallKind::kGraphLaunch;
  if (Has(name, "LaunchKernel") || Has(name, "LaunchCooperative") || Has(name, "ModuleLaunch")) {
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

bool WaitsForEverything(std::string_view call) {
  return call.ends_with("StreamSynchronize") || call.ends_with("DeviceSynchronize") ||
         call.ends_with("QueueFinish");
}

}  // namespace fullbore::timeline
