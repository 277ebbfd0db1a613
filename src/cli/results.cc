#include "cli/results.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>

#include "base/printable.h"
#include "cli/next_step.h"
#include "cli/output.h"
#include "explain/analyze/section.h"
#include "explain/analyze/trace_diff.h"
#include "record/run_reader.h"
#include "report/run_csv.h"

namespace fullbore::cli {

namespace fs = std::filesystem;

namespace {

constexpr char kFileType[] = "FILE";

bool IsOurCsv(std::string_view head) {
  const auto begins_with = [&](const std::vector<analyze::Column>& columns) {
    return head.starts_with(analyze::CsvHeader(columns));
  };
  const auto& all = analyze::AllSections();
  return head.starts_with(report::kSeriesColumns) || head.starts_with(report::StepsColumns()) ||
         begins_with(analyze::ColumnsOfDiff()) ||
         std::any_of(all.begin(), all.end(),
                     [&](const auto* section) { return begins_with(section->columns); });
}

// A run was meant, and the file's name left out.
bool MeansRun(const std::string& name, const std::string& runs_directory) {
  std::error_code ignored;
  return name == kNewestRun ||
         (!runs_directory.empty() && name.find('/') == std::string::npos &&
          fs::exists(fs::path(runs_directory) / (name + std::string(record::kRunSuffix)), ignored));
}

std::string Instead(const ResultFile& file) {
  return &file.format() == &kJsonResult ? "--json - writes to standard output"
                                        : fmt::format("it goes behind {}", file.option);
}

}  // namespace

const ResultFormat kCsvResult = {"a table", IsOurCsv, false};

void AddResult(CLI::App& app, ResultFile& file, const std::string& help) {
  AddResult(app, file.option, file, help);
}

void AddResult(CLI::App& app, const std::string& names, ResultFile& file, const std::string& help) {
  app.add_option(names, file.path, help + "; - is standard output")
      ->type_name(kFileType)
      ->check([](const std::string& name) -> std::string {
        if (name.empty()) return "no name of a file";
        // The parser takes the next option for a name that is missing.
        return name.starts_with('-') && name != "-"
                   ? fmt::format("'{}' is an option; a file is ./{}", name, name)
                   : std::string();
      });
}

void AddForce(CLI::App& app, bool& force) {
  app.add_flag("--force", force, "Replace files that fullbore did not write, too; never an input");
}

Result<void> JudgeResults(std::initializer_list<ResultFile*> files, const InputFiles& inputs, bool force,
                          const std::string& runs_directory) {
  for (ResultFile* file : files) {
    if (MeansRun(file->path, runs_directory)) {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("{} takes a file to write, and '{}' is {}", file->option, file->path,
                               file->path == kNewestRun ? "the newest run" : "a run"),
                   "is the name of the output missing? " + Instead(*file)};
    }
    file->inputs = inputs;
    file->force = force;
    if (auto judged = file->Judge(); !judged) return judged;
  }
  for (const auto* one = files.begin(); one != files.end(); ++one) {
    for (const auto* other = files.begin(); other != one; ++other) {
      if (!(*one)->IsSameAs(**other)) continue;
      return Error{
          ErrorCode::kInvalidArgument,
          fmt::format("{} and {} would both write to '{}'", (*other)->option, (*one)->option, (*one)->path),
          "name two files"};
    }
  }
  return {};
}

bool AnyToStandardOutput(std::initializer_list<const ResultFile*> files) {
  return std::any_of(files.begin(), files.end(),
                     [](const ResultFile* file) { return file->IsStandardOutput(); });
}

Result<void> WriteJson(const ResultFile& file, const nlohmann::ordered_json& json) {
  const nlohmann::ordered_json whole = WithNextStep(json);
  return file.Write(PrintableJson(whole.dump(2, ' ', false, nlohmann::json::error_handler_t::replace)) +
                    "\n");
}

InputFiles InputsNamed(const std::string& runs_directory, const std::vector<std::string>& words) {
  InputFiles inputs;
  const std::vector<std::string> newest = {""};
  for (const std::string& word : words.empty() ? newest : words) {
    if (!word.empty()) inputs.Add(word);
    if (const auto run = FindRun(runs_directory, word)) inputs.Add(*run);
  }
  return inputs;
}

std::string HintForResults(const CLI::App& app, const std::string& problem) {
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_type_name() != kFileType) continue;
    const std::string name = option->get_name();
    const std::string last = name.substr(name.find_last_of(',') + 1);
    if (problem.starts_with(name + ":") || problem.starts_with(last + ":")) {
      return name == "--json" ? "--json FILE, or --json - for standard output" : fmt::format("{} FILE", last);
    }
    std::error_code ignored;
    if (option->count() == 0 || !fs::exists(option->results().front(), ignored)) continue;
    return fmt::format("'{}' was taken for the name behind {}: is that missing?{}", option->results().front(),
                       last, name == "--json" ? " --json - writes to standard output" : "");
  }
  return "";
}

}  // namespace fullbore::cli
