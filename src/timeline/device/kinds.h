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

// Whether the kernel is one of NCCL, RCCL, oneCCL and the like, which training frameworks use; not one of those that
// replace them in inference.
bool IsOfCollectiveLibrary(std::string_view kernel);

// What a kernel of Lane::kComm does, or a collective that PyTorch calls otherwise ("_allgather_base"): "all_reduce";
// empty where its name does not say.
std::string_view CollectiveOfKernel(std::string_view name);

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
// CUDA runtime and driver, HIP, oneAPI's Unified Runtime and Level Zero; versions ("_v3020") do not matter.
CallKind ClassifyCall(std::string_view name);

// Whether the call waits for all that a stream or the device was given, rather than for an event, which may have been
// recorded long before.
bool WaitsForEverything(std::string_view call);

}  // namespace fullbore::timeline
