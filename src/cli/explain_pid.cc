#include "cli/explain_pid.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <optional>

#include "base/ending_signals.h"
#include "base/print.h"
#include "base/temporary_directory.h"
#include "base/text.h"
#include "cli/output.h"
#include "measure/collect/run_place.h"
#include "measure/collect/signals.h"
#include "measure/collect/status_line.h"
#include "measure/stacks/attached_run.h"
#include "measure/stacks/target.h"

namespace fullbore::cli {

namespace {

constexpr double kUsualSeconds = 30;
constexpr double kLongestSeconds = 3600;  // stacks are kept in memory until the end

Result<int64_t> SecondsOf(const std::string& text) {
  const auto seconds = text.empty() ? std::optional(kUsualSeconds) : ParseSeconds(text);
  if (seconds && *seconds >= 1 && *seconds <= kLongestSeconds) return static_cast<int64_t>(*seconds);
  return Error{ErrorCode::kInvalidArgument, fmt::format("--for '{}' is no time from 1s to 1h", text),
               "for instance --for 30s or --for 2m"};
}

// The refusals of the system are no errors of use, except for a process that does not exist.
Result<stacks::Target> TargetOf(int64_t pid) {
  if (pid == getpid()) {
    return Error{ErrorCode::kInvalidArgument, fmt::format("process {} is this one", pid),
                 "name the process that trains: `ps -C python3` lists them"};
  }
  return stacks::Examine("", pid, stacks::Asker::Ourselves());
}

// Where the usual place cannot be used, say because root works in somebody's folder, the answer is worth having all the same.
std::string DirectoryFor(const std::string& wanted) {
  if (wanted != kDefaultRunsDirectory) return wanted;
  const auto usual = collect::MakeRunsDirectory(wanted);
  if (usual) return wanted;
  auto instead = TemporaryDirectory::Make();
  if (!instead) return wanted;
  Print(stderr,
        "fullbore: {}\nfullbore: the run is recorded in '{}' instead; choose a directory with -o DIR\n",
        usual.error().text, instead->path());
  return instead->Keep();
}

}  // namespace

Result<std::string> RecordPid(const PidFlags& flags) {
  const auto seconds = SecondsOf(flags.seconds);
  if (!seconds) return seconds.error();
  auto target = TargetOf(flags.pid);
  if (!target) return target.error();
  const auto py_spy = stacks::FindPySpy(*target);
  if (!py_spy) return py_spy.error();
  collect::Signals signals;
  signals.Watch();
  collect::StatusLine status(flags.quiet ? -1 : STDERR_FILENO);
  stacks::AttachOptions options;
  options.target = *target;
  options.py_spy = *py_spy;
  options.seconds = *seconds;
  options.directory = DirectoryFor(flags.directory);
  bool ended = false;
  options.goes_on = [&](double gone_s) {
    while (const auto signal = signals.Next())
      ended = ended || AsksToEnd(static_cast<int>(signal->ssi_signo));
    status.Show(fmt::format(" fullbore  sampling process {}  {:.0f} of {} s  (Ctrl-C: enough)", flags.pid,
                            std::min(gone_s, static_cast<double>(*seconds)), *seconds));
    return !ended;
  };
  auto path = stacks::RecordAttached(options);
  status.Hide();
  if (path && !flags.quiet) Print(stderr, "fullbore: recorded to {}\n", collect::FromHere(*path));
  return path;
}

}  // namespace fullbore::cli
