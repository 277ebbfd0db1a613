// fullbore alerts watch: keeps watch over a run that is being recorded. `run --rules` starts it beside the command.
#include <fmt/format.h>
#include <signal.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <utility>

#include "base/clock.h"
#include "base/ending_signals.h"
#include "base/print.h"
#include "cli/alert_rules.h"
#include "cli/output.h"
#include "cli/subcommand.h"
#include "record/run_of_nodes.h"
#include "record/run_reader.h"
#include "watch/notify/sentinel.h"
#include "watch/pulse.h"

namespace fullbore::cli {

namespace {

constexpr int64_t kWindowNs = 70 * kNsPerSecond;  // rules look at the last minute
constexpr int64_t kTimesALook = 50;               // a pause is so many times what a look took: 2 % of a core
constexpr int64_t kLongestPauseNs = 10 * kNsPerSecond;
constexpr int64_t kDeliversForNs = 900 * kNsPerSecond;  // after the end of the run
constexpr int kBySignal = 128;                          // as a shell reports it
constexpr timespec kTick = {0, 500'000'000};

struct Flags {
  std::string rules, run;
  std::string directory = kDefaultRunsDirectory;
};

void SayLine(const std::string& line) {
  Print(stdout, "{}\n", line);
  (void)std::fflush(stdout);
}

// Whether the run is over.
Result<bool> LookOnce(const std::string& path, watch::Sentinel& sentinel, watch::Pulse& pulse) {
  const auto end = record::ReadEndOfRun(path, kWindowNs);
  if (!end) return end.error();
  const record::Stage& stage = end->stages.back();
  const bool ended = stage.state == record::StageState::kEnded;
  const bool cut_off = pulse.IsGone(stage.end_ns, MonotonicNs()) && !ended;
  sentinel.Look(*end, stage.end_ns, cut_off);
  return ended || cut_off;
}

// A recorder that ends leaves one file, and no log beside it.
bool IsClosed(const std::string& path) {
  std::error_code error;
  return !std::filesystem::exists(path + "-wal", error);
}

// Held back from every thread, those that do not exist yet included: they are waited for between looks, so that what is
// being said at the end is said, and no program that was run for an alert goes on without us.
sigset_t HoldEndSignals() {
  const sigset_t signals = EndingSignals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return signals;
}

int KeepWatch(const std::string& path, watch::RuleSet rules) {
  const sigset_t signals = HoldEndSignals();
  watch::Sentinel sentinel(path, std::move(rules), SayLine);
  watch::Pulse pulse;
  std::string problem;
  bool was_closed = true;
  int64_t next_ns = 0, over_ns = 0;
  while (true) {
    const int64_t now_ns = MonotonicNs();
    const bool closed = IsClosed(path);
    if (closed && !std::exchange(was_closed, closed)) next_ns = now_ns;
    if (over_ns == 0 && now_ns >= next_ns) {
      const int64_t cpu_ns = ThreadCpuNs();
      const auto over = LookOnce(path, sentinel, pulse);
      if (!over && over.error().code == ErrorCode::kNotFound) return Fail(over.error(), kExitFailure);
      // A full disk for the copy that is read, want of memory: perhaps not at the next look.
      if (!over && std::exchange(problem, over.error().text) != problem)
        SayLine("the run cannot be looked at now: " + problem);
      if (over && *over) over_ns = now_ns;
      const int64_t pause_ns = kTimesALook * (ThreadCpuNs() - cpu_ns);
      next_ns = now_ns + std::clamp(pause_ns, kNsPerSecond, kLongestPauseNs);
    }
    sentinel.Deliver(now_ns);
    if (over_ns != 0 && (sentinel.idle() || now_ns - over_ns > kDeliversForNs)) break;
    if (const int signal = sigtimedwait(&signals, nullptr, &kTick); signal > 0) return kBySignal + signal;
  }
  for (const std::string& target : sentinel.waiting())
    SayLine("not everything could be delivered to " + target);
  return 0;
}

int Watch(const Flags& flags) {
  auto rules = RulesNamed(flags.rules);
  if (!rules) return Fail(rules.error(), kExitUsage);
  const auto path = FindRun(flags.directory, flags.run);
  if (!path) return Fail(path.error(), StatusOf(path.error()));
  if (record::IsRunOfNodes(*path)) return Fail(AlertsAreOfMachines(*path), kExitUsage);
  return KeepWatch(*path, std::move(*rules));
}

Handler Define(CLI::App& app, const Invocation&) {
  auto flags = std::make_shared<Flags>();
  app.add_option("RUN", flags->run,
                 "A run that is being recorded, as for `fullbore explain` (default: the newest)");
  app.add_option("--rules", flags->rules, kRulesHelp)->required()->type_name("FILE");
  app.add_option("-o,--output", flags->directory, "Where runs are kept")
      ->type_name("DIR")
      ->default_str(kDefaultRunsDirectory);
  return [flags] { return Watch(*flags); };
}

}  // namespace

const Subcommand kAlertsWatch = {
    "watch", "Keep watch over a run until it ends: for one that was started without --rules",
    "fullbore alerts watch --rules alerts.toml", Define};

}  // namespace fullbore::cli
