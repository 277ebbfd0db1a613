// What grows with the number of samples, and what suffers from too many threads? Nothing should: an epoch of
// ten million numbers, and a million tiny samples from real shards, with 2 and with 24 threads. Prints for
// each the rate in the first and the last tenth of the epoch, and the memory of the process then.
//
//   loader_scale [DIRECTORY] [--samples N]
//
// DIRECTORY is where the shards are written and kept (default: a temporary one).
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <string>

#include "base/clock.h"
#include "base/fd.h"
#include "base/text.h"
#include "fullbore/loader.h"
#include "fullbore/loader/source.h"
#include "loader/core/source/tar_writer.h"

namespace fullbore::loader {
namespace {

constexpr uint64_t kShards = 16;

// As little work per sample as possible: what is left is the loader's own.
class Indices : public Source {
 public:
  explicit Indices(uint64_t size) : size_(size) {}
  uint64_t size() const override { return size_; }
  const std::vector<SourceField>& fields() const override { return fields_; }
  const std::vector<std::string>& class_names() const override { return class_names_; }
  std::string NameOf(uint64_t id) const override { return fmt::format("index {}", id); }
  Result<void> Read(uint64_t id, RawSample& out) const override {
    out.fields.resize(1);
    out.fields[0] = {{}, static_cast<int64_t>(id)};
    return {};
  }

 private:
  const uint64_t size_;
  const std::vector<SourceField> fields_ = {{"index", SourceFieldKind::kInteger, DType::kInt64, {}}};
  const std::vector<std::string> class_names_;
};

double ResidentMb() {
  const auto text = ReadFile("/proc/self/statm");
  FB_CHECK(text.ok());
  return static_cast<double>(*ParseInt(Words(*text)[1])) * 4096 / 1e6;
}

struct Measured {
  double first_rate = 0, last_rate = 0, first_mb = 0, last_mb = 0;
};

// Every sample exactly once, checked by the sum, which any lost or repeated sample would change.
Result<Measured> Epoch(Loader loader) {
  Measured measured;
  const uint64_t all = loader.samples(), tenth = all / 10;
  uint64_t seen = 0, sum = 0, mark = 0;
  int64_t mark_ns = MonotonicNs();
  for (;;) {
    auto batch = loader.Next();
    if (!batch.ok()) return batch.error();
    if (!*batch) break;
    for (const uint64_t id : (*batch)->sample_ids) sum += id;
    seen += static_cast<uint64_t>((*batch)->rows);
    const bool last = seen == all;
    if (seen - mark < tenth && !last) continue;
    const int64_t now = MonotonicNs();
    const double rate = static_cast<double>(seen - mark) * 1e9 / static_cast<double>(now - mark_ns);
    if (mark == 0) {
      measured.first_rate = rate;
      measured.first_mb = ResidentMb();
    }
    measured.last_rate = rate;
    mark = seen;
    mark_ns = now;
  }
  measured.last_mb = ResidentMb();
  FB_CHECK(seen == all && sum == all * (all - 1) / 2);
  return measured;
}

Result<void> MakeShards(const std::string& directory, uint64_t samples) {
  for (uint64_t shard = 0; shard < kShards; ++shard) {
    const std::string path = fmt::format("{}/tiny-{:03}.tar", directory, shard);
    if (std::filesystem::exists(path)) continue;
    auto writer = TarWriter::Create(path);
    if (!writer.ok()) return writer.error();
    for (uint64_t id = samples * shard / kShards; id < samples * (shard + 1) / kShards; ++id) {
      const std::string text = fmt::format("{}", id);
      const TarWriter::Member member{"cls", {reinterpret_cast<const uint8_t*>(text.data()), text.size()}};
      auto added = writer->Add(fmt::format("{:08}", id), {&member, 1});
      if (!added.ok()) return added;
    }
    auto finished = writer->Finish();
    if (!finished.ok()) return finished;
  }
  return {};
}

Result<void> Run(const std::string& directory, uint64_t samples, uint64_t indices) {
  auto made = MakeShards(directory, samples);
  if (!made.ok()) return made;
  for (const std::string what : {"indices", "shards"}) {
    for (const int threads : {2, 24}) {
      LoaderOptions options;
      options.source.paths = {directory + "/*.tar"};
      options.batch_size = 4096;
      options.threads = threads;
      auto loader = what == "shards" ? Loader::Open(options)
                                     : Loader::Over(std::make_unique<Indices>(indices), options);
      if (!loader.ok()) return loader.error();
      const auto measured = Epoch(std::move(*loader));
      if (!measured.ok()) return measured.error();
      fmt::print(
          "{:8} {:>11} samples, {:2} threads: {:>10} /s first, {:>10} /s last, {:6.1f} MB, then {:6.1f} MB\n",
          what, FormatCount(static_cast<double>(what == "shards" ? samples : indices)), threads,
          FormatCount(measured->first_rate), FormatCount(measured->last_rate), measured->first_mb,
          measured->last_mb);
    }
  }
  return {};
}

int Main(int argc, char** argv) {
  CLI::App app("Ten million indices and a million tiny samples, with 2 and with 24 threads");
  std::string directory;
  uint64_t samples = 1'000'000, indices = 10'000'000;
  app.add_option("directory", directory, "where the shards are written and kept");
  app.add_option("--samples", samples, "tiny samples in the shards");
  app.add_option("--indices", indices, "numbers in the other epoch");
  CLI11_PARSE(app, argc, argv);
  const bool temporary = directory.empty();
  if (temporary)
    directory =
        (std::filesystem::temp_directory_path() / fmt::format("fullbore-scale-{}", getpid())).string();
  std::filesystem::create_directories(directory);
  const auto done = Run(directory, samples, indices);
  if (temporary) std::filesystem::remove_all(directory);
  if (!done.ok()) fmt::print(stderr, "{}\n", ToString(done.error()));
  return done.ok() ? 0 : 1;
}

}  // namespace
}  // namespace fullbore::loader

int main(int argc, char** argv) { return fullbore::loader::Main(argc, argv); }
