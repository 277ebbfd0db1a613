#include "loader/bench/measure.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <thread>

#include "base/clock.h"
#include "base/cores.h"
#include "base/secrets.h"
#include "base/text.h"
#include "fullbore/loader/source.h"
#include "loader/bench/page_cache.h"
#include "loader/core/source/paths.h"
#include "loader/core/store.h"

namespace fullbore::loader::bench {
namespace {

// Requests that wait for a device or a server overlap: one reader shows the latency, many the throughput. 16
// is below the engine's own limit (max_read_threads) and more than the queue of a local disk benefits from.
constexpr int kManyReaders = 16;
// Data that is read repeatedly must stay in the page cache, so it is at most this share of the free memory.
constexpr double kPartOfMemory = 0.25;
constexpr double kMaxWarmBytes = 1e9;
constexpr uint64_t kMinWarmSamples = 256;
// If more than this stays in memory after dropping, a reading is not cold.
constexpr double kStillWarm = 0.05;
constexpr size_t kMaxFilesToDrop = 500'000;  // takes a few seconds
constexpr auto kPatience = std::chrono::milliseconds(100);
constexpr double kWarmUpShare = 0.25;  // of the time of a measurement, before its clock starts

double Seconds(int64_t ns) { return static_cast<double>(ns) / static_cast<double>(kNsPerSecond); }

// Evenly spaced samples of another source: those that are read repeatedly.
class Subset : public Source {
 public:
  Subset(std::shared_ptr<const Source> inner, uint64_t size) : inner_(std::move(inner)), size_(size) {}
  uint64_t size() const override { return size_; }
  const std::vector<SourceField>& fields() const override { return inner_->fields(); }
  const std::vector<std::string>& class_names() const override { return inner_->class_names(); }
  Result<void> Read(uint64_t id, RawSample& out) const override { return inner_->Read(Of(id), out); }
  std::string NameOf(uint64_t id) const override { return inner_->NameOf(Of(id)); }

 private:
  uint64_t Of(uint64_t id) const {
    return static_cast<uint64_t>(static_cast<double>(id) *
                                 (static_cast<double>(inner_->size()) / static_cast<double>(size_)));
  }
  const std::shared_ptr<const Source> inner_;
  const uint64_t size_;
};

// Splits the whole into equal steps and reports how far one of them is.
class Steps {
 public:
  Steps(const Progress& progress, int count) : progress_(progress), count_(count) {}
  void Begin(std::string doing) {
    doing_ = std::move(doing);
    Tell(0);
  }
  void Tell(double part) const { progress_(doing_, (done_ + std::min(part, 1.0)) / count_); }
  void End() { done_ = std::min(done_ + 1, count_); }

 private:
  const Progress& progress_;
  const int count_;
  int done_ = 0;
  std::string doing_;
};

__extension__ using Wide = unsigned __int128;  // a product of two sample numbers may not fit in 64 bits

struct ReadTotals {
  std::atomic<uint64_t> next{0}, samples{0}, bytes{0}, failed{0};
  std::atomic<bool> end{false};
};

void ReadOn(const Source& source, uint64_t stride, bool once, ReadTotals& totals) {
  RawSample sample;
  while (!totals.end.load(std::memory_order_relaxed)) {
    const uint64_t turn = totals.next.fetch_add(1);
    if (once && turn >= source.size()) return;
    // A stride coprime to the size visits every sample, and no two neighbours in a row.
    const auto id = static_cast<uint64_t>(static_cast<Wide>(turn) * stride % source.size());
    if (!source.Read(id, sample).ok()) {
      ++totals.failed;
      continue;
    }
    uint64_t bytes = 0;
    for (const FieldValue& field : sample.fields) bytes += field.bytes.size();
    totals.bytes += bytes;
    ++totals.samples;
  }
}

uint64_t StrideFor(uint64_t size) {
  auto stride = std::max<uint64_t>(1, static_cast<uint64_t>(static_cast<double>(size) * 0.618));
  while (std::gcd(stride, size) != 1) ++stride;
  return stride;
}

class Measurement {
 public:
  Measurement(const MeasureOptions& options, const Progress& progress, const std::atomic<bool>& stop)
      : options_(options), stop_(stop), steps_(progress, 4 + static_cast<int>(options.threads.size())) {}

  Result<Flow> Run() {
    if (auto opened = Open(); !opened.ok()) return opened.error();
    if (auto counted = Describe(); !counted.ok()) return counted.error();
    if (options_.cold) ReadCold();
    WarmUp();
    for (const int threads : options_.threads) {
      if (Stopped()) break;
      if (auto done = MeasurePoint(threads); !done.ok()) return done.error();
    }
    NoteBadSamples();
    flow_.interrupted = Stopped();
    return std::move(flow_);
  }

 private:
  bool Stopped() const { return stop_.load(std::memory_order_relaxed); }

  Result<void> Open() {
    steps_.Begin("listing");
    auto source = OpenSource(options_.loader.source);
    if (!source.ok()) return source.error();
    source_ = std::move(*source);
    if (source_->size() == 0) {
      return Error{ErrorCode::kNotFound,
                   fmt::format("'{}' has no samples", options_.loader.source.paths.front()),
                   "an image folder has one directory per class; see docs/loader.md for the other layouts"};
    }
    return {};
  }

  // The sample size, estimated from a few samples; the first one must be readable at all.
  Result<void> Describe() {
    constexpr uint64_t kLookedAt = 32;
    const std::string& path = options_.loader.source.paths.front();
    flow_.path = MaskUrl(path);
    flow_.remote = IsRemote(path);
    flow_.samples = source_->size();
    flow_.batch_size = options_.loader.batch_size;
    flow_.cores = UsableCores();
    RawSample sample;
    std::optional<Error> failed;
    uint64_t bytes = 0, read = 0;
    const uint64_t looked_at = std::min(kLookedAt, flow_.samples);
    for (uint64_t i = 0; i < looked_at && !Stopped(); ++i) {
      if (auto done = source_->Read(i * (flow_.samples / looked_at), sample); !done.ok()) {
        failed = done.error();
        continue;
      }
      ++read;
      for (const FieldValue& field : sample.fields) bytes += field.bytes.size();
    }
    if (read == 0 && failed) return *failed;
    flow_.bytes_per_sample = read == 0 ? 0 : static_cast<double>(bytes) / static_cast<double>(read);
    const double memory =
        static_cast<double>(sysconf(_SC_AVPHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
    const double room =
        std::min(kMaxWarmBytes, kPartOfMemory * memory) / std::max(flow_.bytes_per_sample, 1.0);
    flow_.used_samples = std::min(flow_.samples, std::max(kMinWarmSamples, static_cast<uint64_t>(room)));
    subset_ = std::make_shared<Subset>(source_, flow_.used_samples);
    steps_.End();
    return {};
  }

  // Reading alone with this many readers; empty if nothing was read.
  std::optional<Reading> Read(const Source& source, int readers, bool once, bool cold) {
    ReadTotals totals;
    const uint64_t stride = StrideFor(source.size());
    std::vector<std::thread> threads;
    const int64_t begin = MonotonicNs();
    std::atomic<int> running = readers;
    for (int i = 0; i < readers; ++i) {
      threads.emplace_back([&] {
        ReadOn(source, stride, once, totals);
        --running;
      });
    }
    double elapsed = 0;
    while (running > 0 && elapsed < options_.seconds && !Stopped()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      elapsed = Seconds(MonotonicNs() - begin);
      steps_.Tell(elapsed / options_.seconds);
    }
    elapsed = Seconds(MonotonicNs() - begin);
    const uint64_t samples = totals.samples, bytes = totals.bytes;
    totals.end = true;
    for (std::thread& thread : threads) thread.join();
    if (samples == 0 || elapsed <= 0) return std::nullopt;
    return Reading{readers, cold, static_cast<double>(samples) / elapsed,
                   static_cast<double>(bytes) / elapsed};
  }

  void ReadCold() {
    for (const int readers : {1, kManyReaders}) {
      if (Stopped()) return;
      steps_.Begin("dropping the files from memory");
      const auto source = MakeCold();
      if (!source) return;
      steps_.Begin(fmt::format("reading, not in memory, {} reader{}", readers, readers == 1 ? "" : "s"));
      if (auto reading = Read(*source, readers, true, true)) flow_.readings.push_back(*reading);
      steps_.End();
    }
  }

  // A source whose samples are not in memory; empty, with a note, if that is impossible.
  std::shared_ptr<const Source> MakeCold() {
    const auto expanded = ExpandPaths(options_.loader.source.paths);
    if (!expanded.ok()) return nullptr;
    const std::vector<std::string> files = LocalFiles(*expanded);
    if (files.empty()) {  // remote: past the disk cache
      SourceOptions uncached = options_.loader.source;
      uncached.cache_bytes = 0;
      uncached.memory_cache_bytes = 0;
      auto source = OpenSource(uncached);
      return source.ok() ? std::shared_ptr<const Source>(std::move(*source)) : nullptr;
    }
    if (files.size() > kMaxFilesToDrop) {
      flow_.notes.push_back(
          fmt::format("reading from the disk was not measured: dropping {} files from memory takes "
                      "too long",
                      FormatCount(static_cast<double>(files.size()))));
      return nullptr;
    }
    const double left = DropFromPageCache(files, stop_);
    if (left > kStillWarm) {
      flow_.notes.push_back(
          fmt::format("reading from the disk was not measured: {} of the data stayed in memory (a "
                      "file system in memory, or files written just now)",
                      FormatPercent(left)));
      return nullptr;
    }
    return source_;
  }

  void WarmUp() {
    const int readers = options_.threads.back();
    steps_.Begin("reading into memory");
    if (Stopped() || !Read(*subset_, kManyReaders, true, false)) return;
    steps_.Begin("reading, in memory");
    if (auto reading = Read(*subset_, readers, false, false)) flow_.readings.push_back(*reading);
    steps_.End();
  }

  Result<void> MeasurePoint(int threads) {
    steps_.Begin(fmt::format("whole way, {} thread{}", threads, threads == 1 ? "" : "s"));
    LoaderOptions options = options_.loader;
    options.threads = threads;
    auto loader = Loader::Over(std::make_unique<Subset>(source_, flow_.used_samples), options);
    if (!loader.ok()) return loader.error();
    const int64_t begin = MonotonicNs();
    const auto warm_up_end = begin + static_cast<int64_t>(options_.seconds * kWarmUpShare * kNsPerSecond);
    LoaderStats before;
    int64_t since = 0, last = 0, samples = 0;
    // Ends with a batch, so that no part of one is missing.
    for (double elapsed = 0; elapsed < options_.seconds && !Stopped();) {
      auto batch = loader->Next(kPatience);
      if (!batch.ok()) {
        if (batch.error().code == ErrorCode::kTimeout) continue;
        return Explained(batch.error());
      }
      if (!*batch) continue;
      const int64_t now = MonotonicNs();
      if (flow_.row.empty()) flow_.row = RowText((*batch)->fields);
      if (since == 0) {
        if (now < warm_up_end) continue;
        before = loader->Stats();
        since = now;
        continue;
      }
      samples += (*batch)->rows;
      last = now;
      elapsed = Seconds(last - since);
      steps_.Tell(elapsed / options_.seconds);
    }
    for (BadSample& bad : loader->bad_samples()) bad_.emplace(std::move(bad.name), std::move(bad.error.text));
    const double elapsed = Seconds(last - since);
    if (samples > 0) flow_.points.push_back(PointOf(threads, samples, elapsed, before, loader->Stats()));
    steps_.End();
    return {};
  }

  // The loader's hint names options that do not exist here.
  static Error Explained(Error error) {
    if (error.code == ErrorCode::kCorrupt) error.hint = "repair or remove them, then measure again";
    return error;
  }

  void NoteBadSamples() {
    if (bad_.empty()) return;
    const auto& [name, why] = *bad_.begin();
    flow_.notes.push_back(fmt::format("{} bad sample{} left out, such as {}: {}", bad_.size(),
                                      bad_.size() == 1 ? " was" : "s were", name, why));
  }

  static std::string RowText(const std::vector<BatchField>& fields) {
    for (const BatchField& field : fields) {
      if (field.kind != FieldKind::kTensor) return field.kind == FieldKind::kText ? "text" : "bytes";
      if (field.shape.size() < 2) continue;
      return fmt::format("{} {}", fmt::join(field.shape.begin() + 1, field.shape.end(), "x"),
                         NameOf(field.dtype));
    }
    return fields.empty() ? "" : NameOf(fields.front().dtype);
  }

  static Point PointOf(int threads, int64_t samples, double elapsed, const LoaderStats& before,
                       const LoaderStats& after) {
    Point point{threads, static_cast<double>(samples) / elapsed, {}};
    for (const StageStats& stage : after.stages) {
      const auto earlier = std::find_if(before.stages.begin(), before.stages.end(),
                                        [&](const StageStats& other) { return other.name == stage.name; });
      const bool had = earlier != before.stages.end();
      const uint64_t count = stage.samples - (had ? earlier->samples : 0);
      const uint64_t busy_ns = stage.busy_ns - (had ? earlier->busy_ns : 0);
      if (count > 0)
        point.stages.push_back({stage.name, static_cast<double>(busy_ns) / 1e3 / static_cast<double>(count)});
    }
    return point;
  }

  const MeasureOptions& options_;
  const std::atomic<bool>& stop_;
  Steps steps_;
  Flow flow_;
  std::shared_ptr<const Source> source_, subset_;
  std::map<std::string, std::string> bad_;  // why, by name; the same for every number of threads
};

}  // namespace

Result<Flow> Measure(const MeasureOptions& options, const Progress& progress, const std::atomic<bool>& stop) {
  return Measurement(options, progress, stop).Run();
}

std::vector<int> UsualThreads(int cores) {
  std::vector<int> threads;
  for (int count = 1; count < cores; count *= 2) threads.push_back(count);
  threads.push_back(std::max(cores, 1));
  return threads;
}

}  // namespace fullbore::loader::bench
