// Checks what src/loader/cuda/driver.h declares of the CUDA driver against cuda.h. test_vendor_headers.py
// generates the function checks from driver.cc and compiles this with each version.
#include <cuda.h>

#include "abi.h"
#include "loader/cuda/driver.h"

namespace ours = fullbore::loader::cuda;

#include "cuda_functions.inc"

SAME_NUMBER(ours::kNotReady, CUDA_ERROR_NOT_READY);
SAME_NUMBER(ours::kOutOfMemory, CUDA_ERROR_OUT_OF_MEMORY);
SAME_NUMBER(ours::kNonBlocking, CU_STREAM_NON_BLOCKING);
SAME_NUMBER(ours::kNoTiming, CU_EVENT_DISABLE_TIMING);
SAME_NUMBER(ours::kPortable, CU_MEMHOSTALLOC_PORTABLE);
static_assert(abi::SameValue<ours::Status, CUresult>());
static_assert(abi::SameValue<ours::Device, CUdevice>());
static_assert(abi::SameValue<ours::DevicePointer, CUdeviceptr>());
static_assert(abi::SameValue<ours::Context, CUcontext>());
static_assert(abi::SameValue<ours::Stream, CUstream>());
static_assert(abi::SameValue<ours::Event, CUevent>());
