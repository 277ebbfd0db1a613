#include "loader/cuda/device_pool.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace fullbore::loader::cuda {
namespace {

// The batch in use, the one ahead, and one whose reader has just released it.
constexpr size_t kFreeBuffers = 3;

// As cudaMalloc aligns, so that any kernel's vector loads are aligned in every field.
constexpr size_t kAlignment = 256;

size_t BytesOf(const BatchField& field) {
  if (field.kind != FieldKind::kTensor) return 0;
  size_t bytes = BytesOf(field.dtype);
  for (const int64_t extent : field.shape) bytes *= static_cast<size_t>(extent);
  return bytes;
}

size_t Aligned(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace

Result<std::shared_ptr<DevicePool>> DevicePool::Make(std::shared_ptr<PrimaryContext> context) {
  std::shared_ptr<DevicePool> pool(new DevicePool(std::move(context)));
  const PrimaryContext::Current current(*pool->context_);
  const Driver& driver = pool->context_->driver();
  if (const Status status = driver.stream_create(&pool->side_, kNonBlocking); status != 0) {
    pool->side_ = nullptr;
    return driver.Failed("cannot create a CUDA stream", status);
  }
  return pool;
}

DevicePool::~DevicePool() {
  const PrimaryContext::Current current(*context_);
  LetGoOfHostBatches(/*wait=*/true);
  for (auto& buffer : free_) Destroy(*buffer);
  if (side_ != nullptr) context_->driver().stream_destroy(side_);
}

void DevicePool::Destroy(Buffer& buffer) {
  const Driver& driver = context_->driver();
  if (buffer.was_read) driver.event_synchronize(buffer.read);
  if (buffer.copied != nullptr) driver.event_destroy(buffer.copied);
  if (buffer.read != nullptr) driver.event_destroy(buffer.read);
  if (buffer.data != 0) driver.mem_free(buffer.data);
}

Result<std::unique_ptr<DevicePool::Buffer>> DevicePool::Take(size_t bytes) {
  {
    const std::lock_guard lock(mutex_);
    const auto fits =
        std::find_if(free_.begin(), free_.end(), [&](const auto& buffer) { return buffer->bytes >= bytes; });
    if (fits != free_.end()) {
      auto buffer = std::move(*fits);
      free_.erase(fits);
      return buffer;
    }
  }
  const Driver& driver = context_->driver();
  auto buffer = std::make_unique<Buffer>();
  buffer->bytes = bytes;
  Status status = driver.mem_alloc(&buffer->data, bytes);
  if (status == 0) status = driver.event_create(&buffer->copied, kNoTiming);
  if (status == 0) status = driver.event_create(&buffer->read, kNoTiming);
  if (status == 0) return buffer;
  Destroy(*buffer);
  return driver.Failed(
      fmt::format("cannot allocate {} on the device for a batch", FormatBytes(static_cast<double>(bytes))),
      status);
}

Result<Batch> DevicePool::Copy(const Batch& host) {
  const PrimaryContext::Current current(*context_);
  const Driver& driver = context_->driver();
  LetGoOfHostBatches(/*wait=*/false);
  size_t bytes = 0;
  for (const BatchField& field : host.fields) bytes += Aligned(BytesOf(field));
  auto taken = Take(std::max<size_t>(bytes, kAlignment));
  if (!taken.ok()) return taken.error();
  Buffer& buffer = **taken;
  Status status = buffer.was_read ? driver.stream_wait(side_, buffer.read, 0) : 0;
  Batch device = host;
  device.cuda_device = context_->ordinal();
  DevicePointer at = buffer.data;
  for (BatchField& field : device.fields) {
    const size_t field_bytes = BytesOf(field);
    if (field_bytes == 0) continue;
    if (status == 0) status = driver.copy_to_device(at, field.data, field_bytes, side_);
    field.data = reinterpret_cast<void*>(at);
    at += Aligned(field_bytes);
  }
  if (status == 0) status = driver.event_record(buffer.copied, side_);
  if (status != 0) {
    Destroy(buffer);
    return driver.Failed("cannot copy a batch to the device", status);
  }
  {
    const std::lock_guard lock(mutex_);
    in_flight_.push_back({buffer.copied, host.owner});
    bytes_copied_ += bytes;
  }
  // Texts stay in the host's memory, which the batch then keeps as well.
  const bool has_items = std::any_of(host.fields.begin(), host.fields.end(), [](const BatchField& field) {
    return field.kind != FieldKind::kTensor;
  });
  device.owner = std::shared_ptr<Buffer>(
      taken->release(), [pool = shared_from_this(), items = has_items ? host.owner : nullptr](Buffer* done) {
        pool->Return(std::unique_ptr<Buffer>(done));
      });
  return device;
}

Result<void> DevicePool::HandOver(const Batch& device, Stream stream) {
  const PrimaryContext::Current current(*context_);
  auto& buffer = *static_cast<Buffer*>(device.owner.get());
  buffer.consumer = stream;
  const Status status = context_->driver().stream_wait(stream, buffer.copied, 0);
  if (status != 0) return context_->driver().Failed("cannot hand a batch to the consumer's stream", status);
  return {};
}

void DevicePool::Return(std::unique_ptr<Buffer> buffer) {
  const PrimaryContext::Current current(*context_);
  context_->driver().event_record(buffer->read, buffer->consumer);
  buffer->was_read = true;
  {
    const std::lock_guard lock(mutex_);
    // The host batch is looked for by this event, which a new copy would set anew.
    const bool copying = std::any_of(in_flight_.begin(), in_flight_.end(),
                                     [&](const InFlight& copy) { return copy.copied == buffer->copied; });
    if (!copying && free_.size() < kFreeBuffers) {
      free_.push_back(std::move(buffer));
      return;
    }
  }
  context_->driver().event_synchronize(buffer->copied);
  LetGoOfHostBatches(/*wait=*/false);
  const std::lock_guard lock(mutex_);
  if (free_.size() < kFreeBuffers) {
    free_.push_back(std::move(buffer));
  } else {
    Destroy(*buffer);
  }
}

void DevicePool::LetGoOfHostBatches(bool wait) {
  std::vector<std::shared_ptr<void>> done;  // destroyed after the lock is: that calls into the host's pool
  const std::lock_guard lock(mutex_);
  std::erase_if(in_flight_, [&](InFlight& copy) {
    const Driver& driver = context_->driver();
    const Status status = wait ? driver.event_synchronize(copy.copied) : driver.event_query(copy.copied);
    if (status == kNotReady) return false;
    done.push_back(std::move(copy.host));
    return true;
  });
}

uint64_t DevicePool::bytes_copied() const {
  const std::lock_guard lock(mutex_);
  return bytes_copied_;
}

}  // namespace fullbore::loader::cuda
