// The loader itself.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fullbore/loader/options.h"
#include "fullbore/loader/types.h"

namespace fullbore::loader {

// For those who bring their own: batch_memory.h and source.h beside this file.
class BatchMemory;
class Source;

// One thread iterates; Stats, TakeMessages and Stop may be called from any other.
class Loader {
 public:
  // Lists or indexes the source; no thread runs before the first Next.
  static Result<Loader> Open(const LoaderOptions& options, RowFunction user_stage = nullptr,
                             std::shared_ptr<BatchMemory> memory = nullptr);
  // The same over a source of the caller's; options.source counts only for memory_cache_bytes.
  static Result<Loader> Over(std::unique_ptr<Source> source, const LoaderOptions& options,
                             RowFunction user_stage = nullptr, std::shared_ptr<BatchMemory> memory = nullptr);
  Loader(Loader&&) noexcept;
  Loader& operator=(Loader&&) noexcept;
  // Ends the threads; one that is stuck in a read of stalled storage is left behind and ends with that read.
  ~Loader();

  // The next batch of the epoch; empty at its end, after which the next call begins
  // the next epoch. After an error the iteration can go on: kCorrupt and other errors
  // of a sample are told once and the next call delivers the good rows of that batch;
  // after kUnavailable (the storage failed) the next call asks the storage again.
  Result<std::optional<Batch>> Next();
  // The same, but kTimeout when `patience` has passed without a batch; then call again.
  Result<std::optional<Batch>> Next(std::chrono::milliseconds patience);

  // Begins `epoch` at its first batch, whatever was read ahead.
  void SetEpoch(uint64_t epoch);
  LoaderState State() const;  // after the last batch that Next returned
  Result<void> Restore(const LoaderState& state);
  // Interrupts the iteration from another thread: until SetEpoch or Restore, Next returns kUnavailable, also
  // one that is waiting.
  void Stop();

  uint64_t samples() const;
  uint64_t batches_per_epoch() const;  // of this rank; from the first batch of an epoch
  const std::vector<std::string>& class_names() const;
  LoaderStats Stats() const;
  std::vector<Message> TakeMessages();         // since the last call
  std::vector<BadSample> bad_samples() const;  // the first 1,000 since Open

 private:
  class Engine;
  explicit Loader(std::shared_ptr<Engine> engine);
  std::shared_ptr<Engine> engine_;
};

}  // namespace fullbore::loader
