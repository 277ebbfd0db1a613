// Device memory for batches, and the stream that fills it.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "fullbore/loader.h"
#include "loader/cuda/driver.h"

namespace fullbore::loader::cuda {

// Thread-safe. Batches keep it alive.
class DevicePool : public std::enable_shared_from_this<DevicePool> {
 public:
  static Result<std::shared_ptr<DevicePool>> Make(std::shared_ptr<PrimaryContext> context);
  ~DevicePool();
  DevicePool(const DevicePool&) = delete;
  DevicePool& operator=(const DevicePool&) = delete;

  // Queues the copy of a host batch and returns at once.
  // The host batch is held until its bytes have been read.
  Result<Batch> Copy(const Batch& host);
  // Makes what is queued on `stream` from now on wait for the batch, and its memory wait for that stream.
  Result<void> HandOver(const Batch& device, Stream stream);
  uint64_t bytes_copied() const;

 private:
  struct Buffer {
    DevicePointer data = 0;
    size_t bytes = 0;
    Event copied = nullptr;  // the side stream has filled it
    Event read = nullptr;    // the consumer's stream has read it
    Stream consumer = nullptr;
    bool was_read = false;
  };
  struct InFlight {
    Event copied = nullptr;  // the buffer's
    std::shared_ptr<void> host;
  };

  explicit DevicePool(std::shared_ptr<PrimaryContext> context) : context_(std::move(context)) {}
  Result<std::unique_ptr<Buffer>> Take(size_t bytes);
  void Return(std::unique_ptr<Buffer> buffer);
  void Destroy(Buffer& buffer);
  void LetGoOfHostBatches(bool wait);

  const std::shared_ptr<PrimaryContext> context_;
  Stream side_ = nullptr;
  mutable std::mutex mutex_;  // protects what follows
  std::vector<std::unique_ptr<Buffer>> free_;
  std::vector<InFlight> in_flight_;
  uint64_t bytes_copied_ = 0;
};

}  // namespace fullbore::loader::cuda
