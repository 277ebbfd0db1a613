// What a device can be doing, recognised by the names of kernels and copies. The trace readers and the
// injected collector classify with the same table; it allocates nothing.
#pragma once

#include <cstdint>
#include <string_view>

#include "record/lane.h"

namespace fullbore::timeline {

using record::Bit;
using record::kCommLane;
using record::kComputeLanes;
using record::kCopyLanes;
using record::kLaneCount;
using record::Lane;

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
