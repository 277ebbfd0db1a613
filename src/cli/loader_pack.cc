#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "base/clock.h"
#include "base/ending_signals.h"
#include "base/print.h"
#include "base/secrets.h"
#include "base/text.h"
#include "cli/output.h"
#include "cli/results.h"
#include "cli/subcommand.h"
#include "loader/core/source/pack.h"

namespace fullbore::cli {

namespace {

struct Flags {
  std::string source;
  std::string output;
  uint64_t shard_bytes = loader::PackOptions().shard_bytes;
  std::optional<uint64_t> shuffle_seed;
  bool force = false;
  ResultFile json{"--json", kJsonResult};
};

volatile sig_atomic_t g_signal = 0;

// Ctrl-C ends the packing between two samples; a second one, while storage stalls, ends the process at once.
void WatchSignals() {
  struct sigaction action = {};
  action.sa_handler = [](int number) { g_signal = number; };
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  for (const int signal : {SIGINT, SIGTERM})
    if (AsksToEnd(signal)) sigaction(signal, &action, nullptr);
}

class PackLine {
 public:
  ~PackLine() {
    if (shown_) Print(stderr, "\r\x1b[K");
  }

  void Show(const loader::PackProgress& progress) {
    constexpr int64_t kIntervalNs = kNsPerSecond / 10;
    const int64_t now_ns = MonotonicNs();
    if (!terminal_ || now_ns - shown_ns_ < kIntervalNs || progress.all_samples == 0) return;
    shown_ns_ = now_ns;
    shown_ = true;
    constexpr uint64_t kCells = 24;
    const uint64_t full = progress.samples * kCells / progress.all_samples;
    const double seconds = static_cast<double>(now_ns - begun_ns_) / 1e9;
    Print(stderr, "\r\x1b[K  packing  [{}{}]  {} of {}  {}  {}/s", std::string(full, '#'),
          std::string(kCells - full, '.'), FormatCount(static_cast<double>(progress.samples)),
          FormatCount(static_cast<double>(progress.all_samples)),
          FormatBytes(static_cast<double>(progress.bytes)),
          FormatBytes(static_cast<double>(progress.bytes) / seconds));
    (void)std::fflush(stderr);
  }

 private:
  const bool terminal_ = isatty(STDERR_FILENO) != 0;
  const int64_t begun_ns_ = MonotonicNs();
  int64_t shown_ns_ = begun_ns_;
  bool shown_ = false;
};

nlohmann::ordered_json ToJson(const Flags& flags, const loader::PackResult& result, int64_t duration_ns) {
  nlohmann::ordered_json json = {{"schema", "fullbore.loader_pack/1"}, {"source", MaskUrl(flags.source)},
                                 {"output", MaskUrl(flags.output)},    {"samples", result.done.samples},
                                 {"shards", result.done.shards},       {"bytes", result.done.bytes},
                                 {"duration_ns", duration_ns},         {"class_names", result.class_names}};
  if (flags.shuffle_seed) json["shuffle_seed"] = *flags.shuffle_seed;
  return json;
}

int Pack(Flags& flags) {
  InputFiles inputs;
  inputs.Add(flags.source);
  if (auto judged = JudgeResults({&flags.json}, inputs, flags.force); !judged)
    return Fail(judged.error(), kExitUsage);
  loader::PackOptions options;
  options.source.paths = {flags.source};
  options.output = flags.output;
  options.shard_bytes = flags.shard_bytes;
  options.shuffle_seed = flags.shuffle_seed;
  options.force = flags.force;
  WatchSignals();
  const int64_t begun_ns = MonotonicNs();
  const auto result = [&] {
    PackLine line;
    return loader::Pack(options, [&](const loader::PackProgress& progress) {
      line.Show(progress);
      return g_signal == 0;
    });
  }();
  if (!result) {
    const int status = StatusOf(result.error());
    constexpr int kSignalled = 128;
    return Fail(result.error(), g_signal != 0 ? kSignalled + g_signal : status);
  }
  const int64_t duration_ns = MonotonicNs() - begun_ns;
  for (const loader::Message& message : result->messages) Print(stderr, "fullbore: {}\n", message.text);
  const loader::PackProgress& done = result->done;
  Print(stderr, "{} samples of {} classes in {}, {}, in {}; they are read as '{}'\n",
        FormatCount(static_cast<double>(done.samples)), result->class_names.size(),
        done.shards == 1 ? "one shard" : fmt::format("{} shards", done.shards),
        FormatBytes(static_cast<double>(done.bytes)), FormatDuration(duration_ns), flags.output);
  if (flags.json.wanted()) {
    auto written = WriteJson(flags.json, ToJson(flags, *result, duration_ns));
    if (!written) return Fail(written.error(), kExitFailure);
  }
  return 0;
}

Handler Define(CLI::App& app, const Invocation&) {
  auto flags = std::make_shared<Flags>();
  app.add_option("DIR", flags->source,
                 "A directory of class directories with images, or a list file (\"path label\", .csv, .tsv)")
      ->required();
  app.add_option("OUT", flags->output, "The directory for the shards; created if it does not exist")
      ->required();
  app.add_option("--shard-size", flags->shard_bytes, "The maximum size of a shard: 256M, 1G (default: 256M)")
      ->transform(CLI::AsSizeValue(true))
      ->type_name("SIZE");
  app.add_option("--shuffle", flags->shuffle_seed,
                 "Pack in a random order seeded with this number (default: sorted, as listed).\n"
                 "For training from remote storage, which reads shards from front to back")
      ->type_name("SEED");
  app.add_flag("--force", flags->force,
               "Pack into a directory even if it is not empty, and replace the shards there; replace the\n"
               "file of --json, whoever wrote it. Never an input");
  AddResult(app, flags->json, "Write a summary to this file");
  return [flags] { return Pack(*flags); };
}

}  // namespace

const Subcommand kLoaderPack = {"pack", "Pack an image folder into tar shards, which store and stream faster",
                                "fullbore loader pack photos/train packed --shard-size 256M", Define};

}  // namespace fullbore::cli
