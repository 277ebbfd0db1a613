#include "cli/output.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/print.h"
#include "base/secrets.h"
#include "base/text.h"
#include "cli/device_windows.h"
#include "cli/results.h"
#include "cli/subcommand.h"
#include "cli/trace_page.h"
#include "explain/diagnose/device_window.h"
#include "explain/diagnose/diagnose.h"
#include "record/run_of_nodes.h"
#include "record/run_reader.h"
#include "report/html.h"
#include "report/json.h"
#include "report/terminal.h"

namespace fullbore::cli {

namespace fs = std::filesystem;

namespace {

using record::kRunSuffix;

constexpr std::string_view kTimeInId = "dddd-dd-dd-dddd-";  // as collect::NameWithTime writes it

bool BeginsWithTime(const std::string& id) {
  if (id.size() <= kTimeInId.size()) return false;
  return std::equal(kTimeInId.begin(), kTimeInId.end(), id.begin(), [](char pattern, char c) {
    return pattern == 'd' ? c >= '0' && c <= '9' : c == pattern;
  });
}

// Without what PlaceForNewRun adds where an id is taken.
std::string WithoutCount(const std::string& name) {
  const size_t minus = name.find_last_of('-');
  if (minus == std::string::npos || minus == 0) return name;
  const auto count = ParseInt(std::string_view(name).substr(minus + 1));
  return count && *count >= 2 && std::isdigit(static_cast<unsigned char>(name[minus + 1]))
             ? name.substr(0, minus)
             : name;
}

// Said once a word: a command looks for its runs more than once.
void SayWhichOf(size_t count, const std::string& name, const fs::path& newest) {
  static std::set<std::string> said;
  if (!said.insert(name).second) return;
  Print(stderr, "fullbore: {} runs are named '{}'; this is the newest, {}\n", count, name,
        newest.stem().string());
}

// Those that `run --name TEXT` recorded. A number at the end counts runs only where the first of that minute is there:
// batch-8 is no run named "batch".
std::vector<fs::path> Named(const std::string& text, const std::vector<fs::path>& files) {
  std::vector<fs::path> named;
  std::ranges::copy_if(files, std::back_inserter(named), [&](const fs::path& file) {
    const std::string id = file.stem().string();
    if (!BeginsWithTime(id)) return false;
    const std::string first = id.substr(0, kTimeInId.size()) + text;
    const auto is_first = [&](const fs::path& other) { return other.stem() == first; };
    return id == first || (NameInId(id) == text && std::ranges::any_of(files, is_first));
  });
  return named;
}

Error NoSuchRun(const std::string& directory, const std::string& text, const std::vector<fs::path>& files) {
  Error error{ErrorCode::kNotFound, fmt::format("no run '{}' in '{}'", text, directory), ""};
  if (files.empty()) {
    error.text = fmt::format("no runs are recorded in '{}'", directory);
    error.hint = "record one: fullbore run -- python train.py";
  } else {
    error.hint = fmt::format("the newest is {}; `fullbore runs` lists all", files.back().stem().string());
  }
  return error;
}

}  // namespace

int Fail(const Error& error, int status) {
  const Error shown = MaskUrls(error);
  Print(stderr, "fullbore: {}\n", shown.text);
  if (!shown.hint.empty()) Print(stderr, "hint: {}\n", shown.hint);
  return status;
}

int OutputColumns() {
  constexpr int kNoTerminal = 160;
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return kNoTerminal;
}

void PrintWrapped(std::string_view text, int indent, int hanging) {
  int blanks = indent;
  for (const std::string& line :
       Wrap(Printable(text, LocaleIsUtf8()), OutputColumns() - std::max(indent, hanging))) {
    Print(stdout, "{:{}}{}\n", "", blanks, line);
    blanks = hanging;
  }
}

int StatusOf(const Error& error) {
  const bool usage = error.code == ErrorCode::kNotFound || error.code == ErrorCode::kInvalidArgument;
  return usage ? kExitUsage : kExitFailure;
}

Error AlertsAreOfMachines(const std::string& folder) {
  return {
      ErrorCode::kInvalidArgument,
      fmt::format("'{}' is a run on several machines, and each machine's file keeps its own alerts", folder),
      "name one of the files in it"};
}

std::vector<fs::path> RunFiles(const std::string& directory) {
  std::vector<fs::path> files;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory, error)) {
    if (entry.path().extension() != kRunSuffix) continue;
    if (!record::IsRunOfNodes(entry.path()) || !record::HoldsNothing(entry.path()))
      files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end(), [](const fs::path& a, const fs::path& b) {
    std::error_code ignored;
    return fs::last_write_time(a, ignored) < fs::last_write_time(b, ignored);
  });
  return files;
}

std::string NameInId(const std::string& id) {
  return BeginsWithTime(id) ? WithoutCount(id.substr(kTimeInId.size())) : id;
}

Result<std::string> FindRun(const std::string& directory, const std::string& text) {
  const std::vector<fs::path> files = RunFiles(directory);
  if (text.empty() || text == kNewestRun) {
    if (files.empty()) return NoSuchRun(directory, text, files);
    return files.back().string();
  }
  std::error_code ignored;
  if (fs::is_regular_file(text, ignored) || record::IsRunOfNodes(text)) return text;
  std::vector<fs::path> matches;
  for (const fs::path& file : files) {
    if (file.stem() == text) return file.string();
    if (file.stem().string().starts_with(text)) matches.push_back(file);
  }
  if (const std::vector<fs::path> named = Named(text, files); !named.empty()) {
    if (named.size() > 1) SayWhichOf(named.size(), text, named.back());
    return named.back().string();
  }
  if (matches.size() == 1) return matches.front().string();
  if (matches.size() > 1) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("the ids of {} runs begin with '{}'", matches.size(), text),
                 fmt::format("the newest of them is {}", matches.back().stem().string())};
  }
  return NoSuchRun(directory, text, files);
}

namespace {

// Every stage of a recording that trained, in order; if none did, the judged one.
std::vector<diagnose::Diagnosis> DiagnoseStages(const record::Recording& recording,
                                                const std::vector<const replay::Change*>& what_if) {
  std::vector<diagnose::Diagnosis> diagnoses;
  if (recording.stages.size() < 2) return {diagnose::Diagnose(recording, "", what_if)};
  for (const record::Stage& stage : recording.stages)
    diagnoses.push_back(diagnose::Diagnose(recording, stage.name, what_if));
  return diagnoses;
}

// The windows of the profiler of each stage; nothing where it has none.
using Windows = std::vector<std::optional<Result<record::Recording>>>;

// What they saw of the CPU is judged with the run, as any other reading of it.
Windows ReadAllWindows(record::Recording& recording) {
  Windows windows;
  for (record::Stage& stage : recording.stages) {
    auto& window = windows.emplace_back();
    if (stage.device_windows.empty()) continue;
    window.emplace(ReadDeviceWindows(stage));
    if (*window) TakeOperatorsOf(**window, stage);
  }
  return windows;
}

// What they saw of the device becomes part of what is said of the run.
void AddDeviceWindows(const Windows& windows, const std::vector<const replay::Change*>& what_if,
                      record::Recording& recording, std::vector<diagnose::Diagnosis>& stages) {
  for (size_t i = 0; i < recording.stages.size(); ++i) {
    if (!windows[i] || stages[i].steps == 0) continue;
    const Result<record::Recording>& trace = *windows[i];
    if (!trace) {
      stages[i].messages.push_back("windows: " + trace.error().text);
      continue;
    }
    diagnose::AddDeviceWindow(recording.stages[i].device_windows.front(), *trace, what_if, stages[i]);
    TakeTablesOf(*trace, recording.stages[i]);
  }
}

}  // namespace

report::Explained ExplainAll(record::Recording recording, const std::vector<const replay::Change*>& what_if) {
  report::Explained explained{std::move(recording), {}, 0};
  const Windows windows = ReadAllWindows(explained.recording);
  explained.stages = DiagnoseStages(explained.recording, what_if);
  AddDeviceWindows(windows, what_if, explained.recording, explained.stages);
  const record::Stage* judged = diagnose::JudgedStage(explained.recording);
  if (explained.stages.size() > 1)
    explained.judged = static_cast<size_t>(judged - explained.recording.stages.data());
  return explained;
}

// Each report on its own: one that cannot be written does not keep the others from being. Returns the first
// error.
Result<void> WriteReports(record::Recording recording, const ReportTargets& targets) {
  report::Explained explained = ExplainAll(std::move(recording), targets.what_if);
  if (targets.memory_what_if) {
    for (diagnose::Diagnosis& stage : explained.stages)
      stage.memory_what_if = diagnose::WhatIfOf(explained.recording, stage.stage, *targets.memory_what_if);
  }
  Result<void> html, json;
  if (targets.html.wanted()) {
    nlohmann::ordered_json more = nlohmann::ordered_json::object();
    if (targets.trace_page != nullptr) targets.trace_page->AddTo(more);
    html = targets.html.Write(report::ToHtml(explained.verdict(), explained.recording, more));
  }
  if (targets.terminal) {
    FILE* out = targets.to_stderr ? stderr : stdout;
    const std::string text = report::ToTerminal(explained.stages, report::StyleFor(fileno(out)),
                                                {html ? targets.html.path : "", targets.again});
    PrintLaidOut(out, text);
    std::fflush(out);
  }
  if (targets.json.wanted()) json = WriteJson(targets.json, report::ToJson(explained));
  return html ? json : html;
}

}  // namespace fullbore::cli
