// What subcommands share: reporting errors, finding a run, writing its reports.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/result_file.h"
#include "explain/diagnose/memory_what_if.h"
#include "explain/replay/change/change.h"
#include "measure/collect/run_place.h"
#include "record/recording.h"
#include "report/explained.h"

namespace fullbore::cli {

using collect::kDefaultRunsDirectory;

// "fullbore: text" and the hint on stderr. Returns `status`.
int Fail(const Error& error, int status);

// The width of standard output: a terminal's columns; wide enough for long names in a file or a pipe.
int OutputColumns();

// Text on standard output, broken between words: the first line indented by `indent` blanks, the others by
// `hanging`.
void PrintWrapped(std::string_view text, int indent, int hanging);

// The exit status when something could not be read: 2 if the command line named something that does not
// exist.
int StatusOf(const Error& error);

// Means a run even where a file has this name: `./last` is the file.
inline constexpr std::string_view kNewestRun = "last";

// The run file that is meant: a path, an id in `directory` or the beginning of one, a name as `run --name` gives it, or,
// for an empty text or kNewestRun, the newest. Of several with the same name it is the newest, which is said once, on
// standard error.
Result<std::string> FindRun(const std::string& directory, const std::string& text);

// Why alerts of a run on several machines cannot be listed or watched: each machine's file keeps its own.
Error AlertsAreOfMachines(const std::string& folder);

// What an id says besides when it was begun: "win" of 2026-11-21-0915-win, and of 2026-11-21-0915-win-2, which is the
// second of that minute. The id itself where it has no time.
std::string NameInId(const std::string& id);

// All run files of a directory, the oldest first.
std::vector<std::filesystem::path> RunFiles(const std::string& directory);

// Diagnoses every stage of a recording that trained, in order; if none did, the judged one. The windows of its profiler,
// where a run has them, become part of what is said of it.
report::Explained ExplainAll(record::Recording recording,
                             const std::vector<const replay::Change*>& what_if = {});

class TracePage;

struct ReportTargets {
  ResultFile json{"--json", kJsonResult};
  ResultFile html{"--html", kHtmlResult};
  const TracePage* trace_page = nullptr;  // of traces: what the HTML report has besides
  std::vector<const replay::Change*> what_if;
  std::optional<diagnose::MemoryChange> memory_what_if;
  std::string again;  // the command that prints the report again
  bool terminal = true;
  bool to_stderr = false;  // for `run`, whose stdout is the command's
};

// Writes a recording's reports. The JSON object is the judged stage's report; with several stages it carries
// the others under "stages".
Result<void> WriteReports(record::Recording recording, const ReportTargets& targets);

}  // namespace fullbore::cli
