#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "base/printable.h"
#include "base/text.h"
#include "cli/output.h"
#include "cli/subcommand.h"
#include "measure/collect/leftovers.h"
#include "record/run_reader.h"

namespace fullbore::cli {

namespace fs = std::filesystem;

namespace {

struct Flags {
  std::string directory = kDefaultRunsDirectory;
  std::string json;
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
  nlohmann::ordered_json json = {{"id", run.id},
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

int List(const Flags& flags) {
  collect::RemoveLeftovers(flags.directory);
  std::error_code error;
  std::vector<record::RunSummary> runs;
  for (const auto& entry : fs::directory_iterator(flags.directory, error)) {
    if (entry.path().extension() != ".fbr") continue;
    auto run = record::ReadRunSummary(entry.path());
    if (!run) {
      Fail(run.error(), 0);
    } else if (HasTags(*run, flags.tags)) {
      runs.push_back(std::move(*run));
    }
  }
  std::sort(runs.begin(), runs.end(),
            [](const auto& a, const auto& b) { return a.wall_begin_ns < b.wall_begin_ns; });
  if (!flags.json.empty()) {
    nlohmann::ordered_json array = nlohmann::ordered_json::array();
    for (const auto& run : runs) array.push_back(ToJson(run));
    if (auto written = WriteJson(flags.json, array); !written) return Fail(written.error(), kExitFailure);
    return 0;
  }
  if (runs.empty()) {
    fmt::print("no run is recorded in '{}'; record one: fullbore run -- python train.py\n", flags.directory);
    return 0;
  }
  size_t widest = 3;
  for (const auto& run : runs) widest = std::max(widest, run.id.size());
  fmt::print("{:<{}}  {:>19}  {:>12}  {:>9}  {:>8}  {}\n", "run", widest, "begun (UTC)", "lasted", "steps",
             "size", "end");
  for (const auto& run : runs) {
    fmt::print("{:<{}}  {:>19}  {:>12}  {:>9}  {:>8}  {}", run.id, widest, FormatUtc(run.wall_begin_ns),
               FormatDuration(DurationNs(run)), FormatCount(static_cast<double>(run.steps)),
               FormatBytes(static_cast<double>(run.bytes)), StateOf(run));
    if (run.stages.size() > 1) fmt::print("  {} stages", run.stages.size());
    for (const auto& [key, value] : run.tags)
      fmt::print("  {}={}", Printable(key, true), Printable(value, true));
    fmt::print("\n");
  }
  return 0;
}

Handler Define(CLI::App& app, const Invocation&) {
  auto flags = std::make_shared<Flags>();
  app.add_option("-o,--output", flags->directory, "Where runs are kept")
      ->type_name("DIR")
      ->default_str(kDefaultRunsDirectory);
  app.add_option("--tag", flags->tags, "Only runs with this tag: key or key=value")->type_name("K[=V]");
  app.add_option("--json", flags->json, "Write the list to this file; - is standard output")
      ->type_name("FILE");
  return [flags] { return List(*flags); };
}

}  // namespace

const Subcommand kRuns = {"runs", "List the recorded runs", "fullbore runs --tag team=vision", Define};

}  // namespace fullbore::cli
