// The CUDA driver's functions that the loader needs, found at run time: one build serves machines with and
// without a GPU, and no vendor's header is needed. Names and types follow the driver's own, whose interface
// is stable since CUDA 4.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "fullbore/result.h"

namespace fullbore::loader::cuda {

using Status = int;  // CUresult; 0 is success
using Device = int;
using DevicePointer = unsigned long long;
struct ContextTag;
struct StreamTag;
struct EventTag;
using Context = ContextTag*;
using Stream = StreamTag*;  // null: the default stream
using Event = EventTag*;

inline constexpr Status kOutOfMemory = 2;    // CUDA_ERROR_OUT_OF_MEMORY
inline constexpr Status kNotReady = 600;     // CUDA_ERROR_NOT_READY
inline constexpr unsigned kNonBlocking = 1;  // CU_STREAM_NON_BLOCKING: never waits for the default stream
inline constexpr unsigned kNoTiming = 2;     // CU_EVENT_DISABLE_TIMING: cheaper to record and to wait for
inline constexpr unsigned kPortable = 1;     // CU_MEMHOSTALLOC_PORTABLE: pinned for every context

// Loaded once a process and never unloaded.
class Driver {
 public:
  // Loads the library named by $FULLBORE_CUDA, else the system's. kUnsupported, with the reason: there is
  // none, it lacks a function, or cuInit failed.
  static Result<std::shared_ptr<const Driver>> Load();

  // "cannot copy a batch to the device: out of memory".
  Error Failed(const std::string& what, Status status) const;

  Status (*init)(unsigned flags);
  Status (*get_error_string)(Status status, const char** text);
  Status (*device_get)(Device* device, int ordinal);
  Status (*device_get_count)(int* count);
  Status (*primary_context_retain)(Context* context, Device device);
  Status (*primary_context_release)(Device device);
  Status (*context_push)(Context context);
  Status (*context_pop)(Context* context);
  Status (*host_alloc)(void** data, size_t bytes, unsigned flags);
  Status (*host_free)(void* data);
  Status (*mem_alloc)(DevicePointer* data, size_t bytes);
  Status (*mem_free)(DevicePointer data);
  Status (*copy_to_device)(DevicePointer to, const void* from, size_t bytes, Stream stream);
  Status (*stream_create)(Stream* stream, unsigned flags);
  Status (*stream_destroy)(Stream stream);
  Status (*stream_wait)(Stream stream, Event event, unsigned flags);
  Status (*event_create)(Event* event, unsigned flags);
  Status (*event_destroy)(Event event);
  Status (*event_record)(Event event, Stream stream);
  Status (*event_query)(Event event);
  Status (*event_synchronize)(Event event);

 private:
  Driver() = default;
};

// The device's primary context, which PyTorch uses, too. Shared by everything that allocates in it.
class PrimaryContext {
 public:
  static Result<std::shared_ptr<PrimaryContext>> Of(std::shared_ptr<const Driver> driver, int ordinal);
  ~PrimaryContext();
  PrimaryContext(const PrimaryContext&) = delete;
  PrimaryContext& operator=(const PrimaryContext&) = delete;

  const Driver& driver() const { return *driver_; }
  int ordinal() const { return device_; }

  // Makes the context current in the calling thread for its lifetime.
  class Current {
   public:
    explicit Current(const PrimaryContext& context) : driver_(*context.driver_) {
      driver_.context_push(context.context_);
    }
    ~Current() {
      Context popped;
      driver_.context_pop(&popped);
    }
    Current(const Current&) = delete;
    Current& operator=(const Current&) = delete;

   private:
    const Driver& driver_;
  };

 private:
  PrimaryContext(std::shared_ptr<const Driver> driver, Device device, Context context)
      : driver_(std::move(driver)), device_(device), context_(context) {}

  const std::shared_ptr<const Driver> driver_;
  const Device device_;
  const Context context_;
};

}  // namespace fullbore::loader::cuda
