#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>

#include "base/print.h"
#include "base/text.h"
#include "cli/output.h"
#include "cli/results.h"
#include "cli/subcommand.h"
#include "measure/collect/channel_place.h"
#include "record/run_reader.h"

namespace fullbore::cli {

namespace fs = std::filesystem;

namespace {

struct Flags {
  std::string directory = kDefaultRunsDirectory;
  ResultFile json{"--json", kJsonResult};
  bool force = false;
  std::vector<std::string> tags;
};

std::string StateOf(const record::RunSummary& run) {
  const record::Stage& last = run.stages.back();
  if (last.state == record::StageState::kRunning) return "unfinished";
  if (last.out_of_memory) return "out of memory";
  return last.exit_status ? fmt::format("exit {}", *last.exit_status) : "ended";
}

int64_t DurationNs(const record::RunSummary& run) {
  int64_t ns = 0;
  for (const record::Stage& stage : run.stages) ns += stage.end_ns - stage.begin_ns;
  return ns;
}

bool HasTags(const record::RunSummary& run, const std::vector<std::string>& wanted) {
  return std::all_of(wanted.begin(), wanted.end(), [&](const std::string& text) {
    const size_t equals = text.find('=');
    const auto tag = run.tags.find(text.substr(0, equals));
    return tag != run.tags.end() && (equals == std::string::npos || tag->second == text.substr(equals + 1));
  });
}

nlohmann::ordered_json ToJson(const record::RunSummary& run) {
  nlohmann::ordered_json json = {{"schema", "fullbore.runs/1"},
                                 {"id", run.id},
                                 {"path", run.path},
                                 {"begin_unix_ns", run.wall_begin_ns},
                                 {"duration_ns", DurationNs(run)},
                                 {"steps", run.steps},
                                 {"bytes", run.bytes},
                                 {"state", StateOf(run)},
                                 {"tags", run.tags},
                                 {"stages", nlohmann::ordered_json::array()}};
  for (const record::Stage& stage : run.stages) {
    json["stages"].push_back({{"name", stage.name}, {"command", stage.command}});
    if (stage.exit_status) json["stages"].back()["exit_status"] = *stage.exit_status;
  }
  return json;
}

struct Column {
  const char* heading;
  bool right;  // aligned
  std::string (*cell)(const record::RunSummary& run);
  int dropped;  // its place in the order of omission on a narrow terminal; 0: never omitted
  int columns = 0;
};

std::vector<Column> AllColumns() {
  using Run = record::RunSummary;
  return {
      {"run", false, [](const Run& run) { return Printable(run.id, LocaleIsUtf8()); }, 0},
      {"begun (UTC)", true, [](const Run& run) { return FormatUtc(run.wall_begin_ns); },
       3},  // most ids say it
      {"lasted", true, [](const Run& run) { return FormatDuration(DurationNs(run)); }, 4},
      {"steps", true, [](const Run& run) { return FormatCount(static_cast<double>(run.steps)); }, 2},
      {"size", true, [](const Run& run) { return FormatBytes(static_cast<double>(run.bytes)); }, 1},
      {"end", false, StateOf, 0},
  };
}

int WidthOf(const std::vector<Column>& columns) {
  int width = -2;
  for (const Column& column : columns) width += 2 + column.columns;
  return width;
}

// The columns that there is room for.
std::vector<Column> ColumnsFor(const std::vector<record::RunSummary>& runs, int room) {
  std::vector<Column> columns = AllColumns();
  for (Column& column : columns) {
    column.columns = Columns(column.heading);
    for (const auto& run : runs) column.columns = std::max(column.columns, Columns(column.cell(run)));
  }
  for (int next = 1; WidthOf(columns) > room; ++next) {
    if (std::erase_if(columns, [&](const Column& column) { return column.dropped == next; }) == 0) break;
  }
  return columns;
}

std::string Line(const std::vector<Column>& columns, const std::function<std::string(const Column&)>& cell) {
  std::string line;
  for (const Column& column : columns) {
    const std::string text = cell(column);
    const std::string blanks(static_cast<size_t>(std::max(0, column.columns - Columns(text))), ' ');
    line += (line.empty() ? "" : "  ") + (column.right ? blanks + text : text + blanks);
  }
  return line.substr(0, line.find_last_not_of(' ') + 1);
}

void PrintList(const std::vector<record::RunSummary>& runs) {
  // Not for a file or a pipe: there, each run stays on one line, for grep.
  const int room = isatty(STDOUT_FILENO) != 0 ? OutputColumns() : std::numeric_limits<int>::max();
  const std::vector<Column> columns = ColumnsFor(runs, room);
  Print(stdout, "{}\n", Line(columns, [](const Column& column) { return std::string(column.heading); }));
  for (const auto& run : runs) {
    std::string line = Line(columns, [&](const Column& column) { return column.cell(run); });
    std::vector<std::string> more;
    if (run.stages.size() > 1) more.push_back(fmt::format("{} stages", run.stages.size()));
    for (const auto& [key, value] : run.tags)
      more.push_back(FormatPrintable(LocaleIsUtf8(), "{}={}", key, value));
    for (const std::string& each : more) {
      if (Columns(line) + 2 + Columns(each) > room) {
        Print(stdout, "{}\n", line);
        line = "   ";
      }
      line += "  " + each;
    }
    Print(stdout, "{}\n", line);
  }
  std::string left_out;
  for (const Column& column : AllColumns()) {
    const auto shown = [&](const Column& each) { return each.heading == std::string_view(column.heading); };
    if (std::none_of(columns.begin(), columns.end(), shown))
      left_out += (left_out.empty() ? "" : ", ") + std::string(column.heading);
  }
  if (!left_out.empty()) PrintWrapped("no room for: " + left_out, 0, 2);
}

int List(Flags& flags) {
  std::error_code error;
  InputFiles inputs;
  for (const auto& entry : fs::directory_iterator(flags.directory, error)) {
    if (entry.path().extension() == record::kRunSuffix) inputs.Add(entry.path());
  }
  if (auto judged = JudgeResults({&flags.json}, inputs, flags.force, flags.directory); !judged)
    return Fail(judged.error(), kExitUsage);
  collect::RemoveLeftoverPlaces(flags.directory);
  std::vector<record::RunSummary> runs;
  for (const auto& entry : fs::directory_iterator(flags.directory, error)) {
    if (entry.path().extension() != record::kRunSuffix) continue;
    auto run = record::ReadRunSummary(entry.path());
    if (!run) {
      Fail(run.error(), 0);
    } else if (HasTags(*run, flags.tags)) {
      runs.push_back(std::move(*run));
    }
  }
  std::sort(runs.begin(), runs.end(),
            [](const auto& a, const auto& b) { return a.wall_begin_ns < b.wall_begin_ns; });
  if (flags.json.wanted()) {
    nlohmann::ordered_json array = nlohmann::ordered_json::array();
    for (const auto& run : runs) array.push_back(ToJson(run));
    if (auto written = WriteJson(flags.json, array); !written) return Fail(written.error(), kExitFailure);
    return 0;
  }
  if (runs.empty()) {
    Print(stdout, "no runs are recorded in '{}'; record one: fullbore run -- python train.py\n",
          flags.directory);
    return 0;
  }
  PrintList(runs);
  return 0;
}

Handler Define(CLI::App& app, const Invocation&) {
  auto flags = std::make_shared<Flags>();
  app.add_option("-o,--output", flags->directory, "Where runs are kept")
      ->type_name("DIR")
      ->default_str(kDefaultRunsDirectory);
  app.add_option("--tag", flags->tags, "Only runs with this tag: key or key=value")->type_name("K[=V]");
  AddResult(app, flags->json, "Write the list to this file");
  AddForce(app, flags->force);
  return [flags] { return List(*flags); };
}

}  // namespace

const Subcommand kRuns = {"runs", "List the recorded runs", "fullbore runs --tag team=vision", Define};

}  // namespace fullbore::cli
