// fullbore loader bench: how fast the data alone can flow.
#include <fmt/format.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string_view>

#include "base/clock.h"
#include "base/cores.h"
#include "base/ending_signals.h"
#include "base/print.h"
#include "base/text.h"
#include "cli/loader_bench_script.h"
#include "cli/output.h"
#include "cli/results.h"
#include "cli/subcommand.h"
#include "fullbore/loader/source.h"
#include "loader/bench/flow_json.h"
#include "loader/bench/measure.h"
#include "loader/bench/plot.h"
#include "loader/bench/torch_peer.h"
#include "report/terminal.h"

namespace fullbore::cli {

namespace {

using namespace loader::bench;

struct Flags {
  std::vector<std::string> paths;
  std::vector<int> threads;
  std::string like, script, python = "python3";
  ResultFile json{"--json", kJsonResult};
  double samples_per_s = 0, seconds = 3;
  int image_size = 224;
  int64_t batch_size = 64;
  bool warm_only = false, force = false;
};

std::atomic<bool> g_stop = false;

// The first Ctrl-C ends the measurement; a second one, while storage stalls, ends the process.
void WatchSignals() {
  struct sigaction action = {};
  action.sa_handler = [](int) { g_stop.store(true, std::memory_order_relaxed); };
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  for (const int signal : {SIGINT, SIGTERM})
    if (AsksToEnd(signal)) sigaction(signal, &action, nullptr);
}

// The progress line, on a terminal only; erased at the end.
class MeasuringLine {
 public:
  ~MeasuringLine() {
    if (shown_) Print(stderr, "\r\x1b[K");
  }
  void Show(const std::string& doing, double share) {
    constexpr int64_t kIntervalNs = kNsPerSecond / 10;
    const int64_t now_ns = MonotonicNs();
    if (!terminal_ || (shown_ && now_ns - shown_ns_ < kIntervalNs)) return;
    shown_ns_ = now_ns;
    shown_ = true;
    constexpr int kCells = 24;
    const int full = static_cast<int>(share * kCells);
    const std::string bar =
        std::string(static_cast<size_t>(full), '#') + std::string(static_cast<size_t>(kCells - full), '.');
    Print(stderr, "\r\x1b[K  measuring  [{}]  {}", bar, doing);
    (void)std::fflush(stderr);
  }

 private:
  const bool terminal_ = isatty(STDERR_FILENO) != 0;
  int64_t shown_ns_ = 0;
  bool shown_ = false;
};

PlotStyle StyleOfStdout() {
  const report::TerminalStyle style = report::StyleFor(STDOUT_FILENO);
  return {style.width, style.color, style.unicode};
}

std::optional<Error> Wrong(const Flags& flags) {
  const auto wrong = [](std::string text, std::string hint) {
    return Error{ErrorCode::kInvalidArgument, std::move(text), std::move(hint)};
  };
  if (flags.paths.empty() == flags.script.empty()) {
    return wrong("loader bench: give either a PATH with data or --script with a training script",
                 "fullbore loader bench photos/train");
  }
  for (const int threads : flags.threads) {
    if (threads < 1) {
      return wrong(fmt::format("--threads {}: at least one thread is needed", threads),
                   "leave the flag out for 1, 2, 4, ... up to the cores");
    }
    if (threads > loader::kMaxThreads) {
      return wrong(fmt::format("--threads {}: more than {}", threads, loader::kMaxThreads),
                   "more threads than cores gain nothing");
    }
  }
  if (!flags.like.empty() && flags.like != "torch") {
    return wrong(fmt::format("--like {} is not supported", flags.like), "the only choice is --like torch");
  }
  constexpr double kMaxSeconds = 86'400;
  if (!(flags.seconds > 0 && flags.seconds <= kMaxSeconds)) {
    return wrong(fmt::format("--seconds {}: must be above 0 and at most a day", flags.seconds), "");
  }
  if (flags.batch_size < 1) {
    return wrong(fmt::format("--batch-size {}: must be at least 1", flags.batch_size), "");
  }
  if (flags.image_size < 1) {
    return wrong(fmt::format("--image-size {}: must be at least 1 pixel", flags.image_size), "");
  }
  if (!(flags.samples_per_s >= 0 && std::isfinite(flags.samples_per_s))) {
    return wrong(fmt::format("--samples-per-s {}: a rate cannot be negative", flags.samples_per_s), "");
  }
  return std::nullopt;
}

Result<MeasureOptions> OptionsOf(const Flags& flags) {
  MeasureOptions options;
  options.loader.source.paths = flags.paths;
  options.loader.batch_size = flags.batch_size;
  options.seconds = flags.seconds;
  options.cold = !flags.warm_only;
  options.threads = flags.threads.empty() ? UsualThreads(UsableCores()) : flags.threads;
  std::sort(options.threads.begin(), options.threads.end());
  options.threads.erase(std::unique(options.threads.begin(), options.threads.end()), options.threads.end());
  auto source = loader::OpenSource(options.loader.source);
  if (!source.ok()) return source.error();
  const auto& fields = (*source)->fields();
  const bool has_images = std::any_of(fields.begin(), fields.end(), [](const loader::SourceField& field) {
    return field.kind == loader::SourceFieldKind::kImage;
  });
  if (has_images) {
    options.loader.transforms = {
        loader::RandomResizedCrop{.height = flags.image_size, .width = flags.image_size},
        loader::RandomHorizontalFlip{}, loader::Normalize{}};
  }
  return options;
}

// How fast PyTorch reads the same data; a note if that cannot be measured.
void AddTorch(const Flags& flags, const std::vector<int>& threads, Flow& flow, const Progress& progress) {
  TorchOptions options;
  options.python = flags.python;
  options.paths = flags.paths;
  options.image_size = flags.image_size;
  options.batch_size = flags.batch_size;
  options.seconds = flags.seconds;
  options.workers = threads;
  options.workers.insert(options.workers.begin(), 0);
  options.limit = flow.used_samples;
  if (auto done = MeasureTorch(options, flow, progress, g_stop); !done.ok()) {
    flow.notes.push_back(done.error().text + (done.error().hint.empty() ? "" : "; " + done.error().hint));
  }
}

// To the terminal first: if the file cannot be written, the measurements must not be lost.
template <typename Flow>
std::optional<int> Show(const Flags& flags, const Flow& flow) {
  if (!flags.json.IsStandardOutput()) {
    PrintLaidOut(stdout, ToTerminal(flow, flags.samples_per_s, StyleOfStdout()));
  }
  if (flags.json.wanted()) {
    if (auto written = WriteJson(flags.json, ToJson(flow, flags.samples_per_s)); !written) {
      return Fail(written.error(), kExitFailure);
    }
  }
  return std::nullopt;
}

InputFiles InputsOf(const Flags& flags, const Invocation& invocation) {
  InputFiles inputs;
  for (const std::string& path : flags.paths) inputs.Add(path);
  if (flags.script.empty()) return inputs;
  std::vector<std::string> command = {flags.python, flags.script};
  command.insert(command.end(), invocation.command.begin(), invocation.command.end());
  inputs.AddCommand(command);
  return inputs;
}

int MeasurePath(const Flags& flags) {
  auto options = OptionsOf(flags);
  if (!options) return Fail(options.error(), StatusOf(options.error()));
  WatchSignals();
  Result<Flow> flow = [&] {
    MeasuringLine line;
    const Progress progress = [&](const std::string& doing, double share) { line.Show(doing, share); };
    auto measured = Measure(*options, progress, g_stop);
    if (measured && !flags.like.empty() && !g_stop) AddTorch(flags, options->threads, *measured, progress);
    if (measured) measured->interrupted = g_stop;
    return measured;
  }();
  if (!flow) return Fail(flow.error(), StatusOf(flow.error()));
  if (const auto status = Show(flags, *flow)) return *status;
  constexpr int kInterrupted = 128 + SIGINT;
  return flow->interrupted ? kInterrupted : 0;
}

int MeasureScript(const Flags& flags, const Invocation& invocation) {
  WatchSignals();
  auto flow = [&] {
    MeasuringLine line;
    return DrainScript({flags.python, flags.script, invocation.command, flags.seconds}, g_stop,
                       [&](const std::string& doing) { line.Show(doing, 0); });
  }();
  if (!flow) return Fail(flow.error(), g_stop ? 128 + SIGINT : kExitFailure);
  if (const auto status = Show(flags, *flow)) return *status;
  return 0;
}

Handler Define(CLI::App& app, const Invocation& invocation) {
  auto flags = std::make_shared<Flags>();
  app.add_option(
      "PATH", flags->paths,
      "A directory of class directories, tar shards (\"train-{000..012}.tar\"), a list file, a URL");
  app.add_option("--threads", flags->threads,
                 "Numbers of threads to measure (default: 1, 2, 4, ... up to the cores)")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("N,N");
  app.add_option("--samples-per-s", flags->samples_per_s, "Say how many threads this rate takes")
      ->type_name("N");
  app.add_option("--like", flags->like, "Also measure PyTorch's DataLoader on the same data")
      ->type_name("torch");
  app.add_option("--script", flags->script,
                 "Instead of PATH: find the training DataLoader of this script and iterate it alone.\n"
                 "The script's own arguments go after --")
      ->type_name("FILE");
  app.add_option("--python", flags->python, "The interpreter for --like torch and --script")
      ->default_str("python3");
  app.add_option("--image-size", flags->image_size, "Side of the random crop that images become")
      ->default_str("224");
  app.add_option("--batch-size", flags->batch_size, "Samples per batch")->default_str("64");
  app.add_option("--seconds", flags->seconds, "For each measurement")->default_str("3");
  app.add_flag("--warm-only", flags->warm_only,
               "Do not drop the files from memory to measure the disk: others may be using them");
  AddResult(app, flags->json, "Write what was measured to this file");
  AddForce(app, flags->force);
  return [flags, &invocation] {
    if (const auto wrong = Wrong(*flags)) return Fail(*wrong, kExitUsage);
    if (auto judged = JudgeResults({&flags->json}, InputsOf(*flags, invocation), flags->force); !judged)
      return Fail(judged.error(), kExitUsage);
    return flags->script.empty() ? MeasurePath(*flags) : MeasureScript(*flags, invocation);
  };
}

}  // namespace

const Subcommand kLoaderBench = {"bench", "Measure how fast the data alone can flow, and what limits it",
                                 "fullbore loader bench photos/train --samples-per-s 5000", Define};

}  // namespace fullbore::cli
