// What a device can be doing, recognised by the names of kernels and copies. The trace readers and the
// injected collector classify with the same table; it allocates nothing.
#pragma once

#include <cstdint>
#include <string_view>

namespace fullbore::timeline {

// Lanes of the sweep, by priority: when several are active at once, the time belongs to the first.
enum class Lane : uint8_t {
  kMatmulTensor,  // matrix products and convolutions on tensor cores
  kMatmul,        // the same without
  kAttention,
  kOptimizer,
  kReduction,  // reductions, normalisation, softmax
  kElementwise,
  kOtherCompute,
  kComm,
  kH2dPageable,
  kH2dPinned,
  kD2hPageable,
  kD2hPinned,
  kD2d,  // on the device, between devices, and copies of unknown direction
  kMemset,
};
inline constexpr int kLaneCount = 14;
inline constexpr uint32_t kComputeLanes = (1U << static_cast<int>(Lane::kComm)) - 1;
inline constexpr uint32_t kCommLane = 1U << static_cast<int>(Lane::kComm);
inline constexpr uint32_t kCopyLanes = ((1U << kLaneCount) - 1) & ~(kComputeLanes | kCommLane);

constexpr uint32_t Bit(Lane lane) { return 1U << static_cast<int>(lane); }
std::string_view Name(Lane lane);  // "matmul_tensor", "copy_h2d_pageable"

Lane ClassifyKernel(std::string_view name);
Lane ClassifyCopy(std::string_view name);  // "Memcpy HtoD (Pageable -> Device)", "Memset (Device)"

// What a host call into the driver or runtime does, as far as it can explain an idle device.
enum class CallKind : uint8_t {
  kLaunch,
  kGraphLaunch,
  kCopy,  // asynchronous by name, but blocks if the host memory is pageable
  kMemset,
  kSync,    // cudaStreamSynchronize, cudaDeviceSynchronize, cudaEventSynchronize, a copy that blocks by name
  kMemory,  // cudaMalloc, cudaFree, cudaHostAlloc: they wait for the device
  kOther,
};
CallKind ClassifyCall(
    std::string_view name);  // CUDA runtime and driver, HIP; versions ("_v3020") do not matter

}  // namespace fullbore::timeline
