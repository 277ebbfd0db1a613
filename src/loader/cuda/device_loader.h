// Batches on the device: copied from pinned memory on a separate stream, one
// batch ahead of the consumer, so that the copy overlaps with computation, and
// the consumer's stream waits for an event instead of the host for a copy.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "fullbore/loader.h"
#include "loader/cuda/driver.h"

namespace fullbore::loader::cuda {

// As Batch, with `data` of tensors pointing to device memory. The memory returns to the pool with the last
// copy; it is written again only after the work that the consumer had queued on its stream by then.
class DeviceLoader {
 public:
  // `options` opens a loader over pinned memory for the device `ordinal`.
  static Result<DeviceLoader> Open(const LoaderOptions& options, int ordinal,
                                   RowFunction user_stage = nullptr);
  DeviceLoader(DeviceLoader&&) noexcept;
  DeviceLoader& operator=(DeviceLoader&&) noexcept;
  ~DeviceLoader();

  // The consumer's stream, on which the kernels that read
  // the next batches are queued. At first the default one.
  void SetStream(Stream stream);

  // As Loader's.
  Result<std::optional<Batch>> Next(std::chrono::milliseconds patience);
  void SetEpoch(uint64_t epoch);
  LoaderState State() const;  // after the last batch that Next returned, not after the one ahead
  Result<void> Restore(const LoaderState& state);
  void Stop();
  uint64_t samples() const;
  uint64_t batches_per_epoch() const;
  const std::vector<std::string>& class_names() const;
  LoaderStats Stats() const;  // with a stage "copy"
  std::vector<Message> TakeMessages();
  std::vector<BadSample> bad_samples() const;

 private:
  struct Impl;
  explicit DeviceLoader(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace fullbore::loader::cuda
