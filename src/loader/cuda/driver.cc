#include "loader/cuda/driver.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <utility>

namespace fullbore::loader::cuda {
namespace {

Error NoDriver(const std::string& why) {
  return {ErrorCode::kUnsupported, fmt::format("there is no CUDA device to load batches onto: {}", why),
          "leave device out to keep batches in host memory"};
}

}  // namespace

Result<std::shared_ptr<const Driver>> Driver::Load() {
  const char* const named = std::getenv("FULLBORE_CUDA");
  const std::string library = named != nullptr ? named : "libcuda.so.1";
  void* const handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return NoDriver(dlerror());
  std::shared_ptr<Driver> driver(new Driver);
  std::string missing;
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(handle, name));
    if (function == nullptr) missing = name;
  };
  find(driver->init, "cuInit");
  find(driver->get_error_string, "cuGetErrorString");
  find(driver->device_get, "cuDeviceGet");
  find(driver->device_get_count, "cuDeviceGetCount");
  find(driver->primary_context_retain, "cuDevicePrimaryCtxRetain");
  find(driver->primary_context_release, "cuDevicePrimaryCtxRelease_v2");
  find(driver->context_push, "cuCtxPushCurrent_v2");
  find(driver->context_pop, "cuCtxPopCurrent_v2");
  find(driver->host_alloc, "cuMemHostAlloc");
  find(driver->host_free, "cuMemFreeHost");
  find(driver->mem_alloc, "cuMemAlloc_v2");
  find(driver->mem_free, "cuMemFree_v2");
  find(driver->copy_to_device, "cuMemcpyHtoDAsync_v2");
  find(driver->stream_create, "cuStreamCreate");
  find(driver->stream_destroy, "cuStreamDestroy_v2");
  find(driver->stream_wait, "cuStreamWaitEvent");
  find(driver->event_create, "cuEventCreate");
  find(driver->event_destroy, "cuEventDestroy_v2");
  find(driver->event_record, "cuEventRecord");
  find(driver->event_query, "cuEventQuery");
  find(driver->event_synchronize, "cuEventSynchronize");
  if (!missing.empty()) return NoDriver(fmt::format("{} lacks {}", library, missing));
  if (const Status status = driver->init(0); status != 0)
    return NoDriver(driver->Failed("cuInit", status).text);
  return std::shared_ptr<const Driver>(std::move(driver));
}

Error Driver::Failed(const std::string& what, Status status) const {
  const char* text = nullptr;
  if (get_error_string(status, &text) != 0 || text == nullptr) text = "an unknown error";
  const bool memory = status == kOutOfMemory;
  return {memory ? ErrorCode::kNoSpace : ErrorCode::kIo,
          fmt::format("{}: {} (CUDA error {})", what, text, status),
          memory ? "reduce batch_size or prefetch_batches" : ""};
}

Result<std::shared_ptr<PrimaryContext>> PrimaryContext::Of(std::shared_ptr<const Driver> driver,
                                                           int ordinal) {
  int count = 0;
  Device device = 0;
  if (driver->device_get_count(&count) != 0 || ordinal < 0 || ordinal >= count) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("there is no CUDA device {}: this process sees {}", ordinal, count),
                 "check CUDA_VISIBLE_DEVICES, which decides what devices a process sees"};
  }
  if (const Status status = driver->device_get(&device, ordinal); status != 0) {
    return driver->Failed(fmt::format("cannot open CUDA device {}", ordinal), status);
  }
  Context context = nullptr;
  if (const Status status = driver->primary_context_retain(&context, device); status != 0) {
    return driver->Failed(fmt::format("cannot use CUDA device {}", ordinal), status);
  }
  return std::shared_ptr<PrimaryContext>(new PrimaryContext(std::move(driver), device, context));
}

PrimaryContext::~PrimaryContext() { driver_->primary_context_release(device_); }

}  // namespace fullbore::loader::cuda
