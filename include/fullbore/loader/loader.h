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

// To supply your own, see batch_memory.h and source.h beside this file.
class BatchMemory;
class Source;

// One thread iterates; Stats, TakeMessages and Stop may be called from any other.
class Loader {
 public:
  // Lists or indexes the source; no thread starts before the first Next.
  static Result<Loader> Open(const LoaderOptions& options, RowFunction user_stage = nullptr,
                             std::shared_ptr<BatchMemory> memory = nullptr);
  // The same for a source that the caller supplies; of options.source only memory_cache_bytes is used.
  static Result<Loader> Over(std::unique_ptr<Source> source, const LoaderOptions& options,
                             RowFunction user_stage = nullptr, std::shared_ptr<BatchMemory> memory = nullptr);
  Loader(Loader&&) noexcept;
  Loader& operator=(Loader&&) noexcept;
  // Ends the threads; one that is stuck reading from stalled storage is left behind and ends with its read.
  ~Loader();

  // The next batch of the epoch; empty at its end, after which the next call begins
  // the next epoch. The iteration can go on after an error: kCorrupt and other errors
  // of a sample are reported once, and the next call delivers the good rows of that
  // batch; after kUnavailable (the storage failed) the next call tries the storage again.
  Result<std::optional<Batch>> Next();
  // The same, but returns kTimeout if no batch was ready within `patience`; then call again.
  Result<std::optional<Batch>> Next(std::chrono::milliseconds patience);

  // Begins `epoch` at its first batch, and drops what was read ahead of any other.
  void SetEpoch(uint64_t epoch);
  LoaderState State() const;  // after the last batch that Next returned
  Result<void> Restore(const LoaderState& state);
  // Interrupts the iteration from another thread: Next, including a call that is waiting now, returns
  // kUnavailable until SetEpoch or Restore.
  void Stop();

  uint64_t samples() const;
  uint64_t batches_per_epoch() const;  // of this rank; counted from the first batch of an epoch
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
