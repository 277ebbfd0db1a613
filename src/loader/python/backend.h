// What the Python interface iterates: a loader whose batches are in the host's memory or on a device, with the same
// calls.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fullbore/loader.h"
#include "loader/cuda/device_loader.h"

namespace fullbore::loader {

class Backend {
 public:
  virtual ~Backend() = default;
  virtual Result<std::optional<Batch>> Next(std::chrono::milliseconds patience) = 0;
  virtual void SetEpoch(uint64_t epoch) = 0;
  virtual LoaderState State() const = 0;
  virtual Result<void> Restore(const LoaderState& state) = 0;
  virtual void Stop() = 0;
  virtual void SetStream(
      uint64_t stream) = 0;  // the consumer's CUDA stream; nothing where batches stay in the host
  virtual uint64_t samples() const = 0;
  virtual uint64_t batches_per_epoch() const = 0;
  virtual std::vector<std::string> class_names() const = 0;
  virtual LoaderStats Stats() const = 0;
  virtual std::vector<Message> TakeMessages() = 0;
  virtual std::vector<BadSample> bad_samples() const = 0;
};

template <typename L>
class BackendOf : public Backend {
 public:
  explicit BackendOf(L loader) : loader_(std::move(loader)) {}
  Result<std::optional<Batch>> Next(std::chrono::milliseconds patience) override {
    return loader_.Next(patience);
  }
  void SetEpoch(uint64_t epoch) override { loader_.SetEpoch(epoch); }
  LoaderState State() const override { return loader_.State(); }
  Result<void> Restore(const LoaderState& state) override { return loader_.Restore(state); }
  void Stop() override { loader_.Stop(); }
  void SetStream(uint64_t stream) override {
    if constexpr (requires { loader_.SetStream(nullptr); })
      loader_.SetStream(reinterpret_cast<cuda::Stream>(stream));
  }
  uint64_t samples() const override { return loader_.samples(); }
  uint64_t batches_per_epoch() const override { return loader_.batches_per_epoch(); }
  std::vector<std::string> class_names() const override { return loader_.class_names(); }
  LoaderStats Stats() const override { return loader_.Stats(); }
  std::vector<Message> TakeMessages() override { return loader_.TakeMessages(); }
  std::vector<BadSample> bad_samples() const override { return loader_.bad_samples(); }

 private:
  L loader_;
};

}  // namespace fullbore::loader
