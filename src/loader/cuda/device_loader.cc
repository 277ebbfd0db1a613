#include "loader/cuda/device_loader.h"

#include <atomic>
#include <utility>

#include "loader/cuda/device_pool.h"
#include "loader/cuda/pinned_memory.h"

namespace fullbore::loader::cuda {

struct DeviceLoader::Impl {
  using Taken = Result<std::optional<Batch>>;

  Loader host;
  std::shared_ptr<DevicePool> pool;
  // What the host's loader has given but the consumer has
  // not: a batch being copied, the end of an epoch, an error.
  std::optional<Taken> ahead;
  LoaderState given;                         // after the last batch that the consumer got
  std::atomic<uint64_t> samples_copied = 0;  // Stats reads it in any thread
  Stream consumer = nullptr;

  Taken TakeFromHost(std::chrono::milliseconds patience) {
    auto batch = host.Next(patience);
    if (!batch.ok() || !*batch) return batch;
    auto copied = pool->Copy(**batch);
    if (!copied.ok()) return copied.error();
    samples_copied += static_cast<uint64_t>(copied->rows);
    return std::optional<Batch>(std::move(*copied));
  }

  void LookAhead() {
    Taken taken = TakeFromHost(std::chrono::milliseconds(0));
    if (!taken.ok() && taken.error().code == ErrorCode::kTimeout) return;
    ahead = std::move(taken);
  }

  void Forget() {
    ahead.reset();
    given = host.State();
  }
};

Result<DeviceLoader> DeviceLoader::Open(const LoaderOptions& options, int ordinal, RowFunction user_stage) {
  auto driver = Driver::Load();
  if (!driver.ok()) return driver.error();
  auto context = PrimaryContext::Of(*driver, ordinal);
  if (!context.ok()) return context.error();
  auto pool = DevicePool::Make(*context);
  if (!pool.ok()) return pool.error();
  auto host = Loader::Open(options, std::move(user_stage), PinnedMemory(*context));
  if (!host.ok()) return host.error();
  const LoaderState state = host->State();
  return DeviceLoader(
      std::unique_ptr<Impl>(new Impl{std::move(*host), std::move(*pool), std::nullopt, state, 0, nullptr}));
}

DeviceLoader::DeviceLoader(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
DeviceLoader::DeviceLoader(DeviceLoader&&) noexcept = default;
DeviceLoader& DeviceLoader::operator=(DeviceLoader&&) noexcept = default;
DeviceLoader::~DeviceLoader() = default;

Result<std::optional<Batch>> DeviceLoader::Next(std::chrono::milliseconds patience) {
  if (!impl_->ahead) {
    impl_->ahead = impl_->TakeFromHost(patience);
    const bool timeout = !impl_->ahead->ok() && impl_->ahead->error().code == ErrorCode::kTimeout;
    if (timeout) return std::exchange(impl_->ahead, std::nullopt)->error();
  }
  // The state is read before the host loader advances by a batch.
  impl_->given = impl_->host.State();
  auto taken = std::move(*std::exchange(impl_->ahead, std::nullopt));
  if (!taken.ok()) return taken;
  if (*taken) {
    const auto handed = impl_->pool->HandOver(**taken, impl_->consumer);
    if (!handed.ok()) return handed.error();
    impl_->LookAhead();
  }
  return taken;
}

void DeviceLoader::SetEpoch(uint64_t epoch) {
  // As the host's loader does: an epoch of which nothing was given yet goes on as it was read ahead.
  if (impl_->given.epoch == epoch && impl_->given.consumed == 0) return;
  impl_->host.SetEpoch(epoch);
  impl_->Forget();
}

LoaderState DeviceLoader::State() const { return impl_->given; }

Result<void> DeviceLoader::Restore(const LoaderState& state) {
  auto restored = impl_->host.Restore(state);
  if (restored.ok()) impl_->Forget();
  return restored;
}

LoaderStats DeviceLoader::Stats() const {
  LoaderStats stats = impl_->host.Stats();
  StageStats copy;
  copy.name = "copy";
  copy.samples = impl_->samples_copied;
  copy.bytes = impl_->pool->bytes_copied();
  stats.stages.push_back(copy);
  return stats;
}

void DeviceLoader::SetStream(Stream stream) { impl_->consumer = stream; }
void DeviceLoader::Stop() { impl_->host.Stop(); }
uint64_t DeviceLoader::samples() const { return impl_->host.samples(); }
uint64_t DeviceLoader::batches_per_epoch() const { return impl_->host.batches_per_epoch(); }
const std::vector<std::string>& DeviceLoader::class_names() const { return impl_->host.class_names(); }
std::vector<Message> DeviceLoader::TakeMessages() { return impl_->host.TakeMessages(); }
std::vector<BadSample> DeviceLoader::bad_samples() const { return impl_->host.bad_samples(); }

}  // namespace fullbore::loader::cuda
