// The options of subcommands that name a file to write: `--json FILE`, `--html FILE`, `-o FILE`. They mean the same
// everywhere: "-" is standard output, --force replaces what fullbore did not write, and a refusal comes before any work.
#pragma once

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/result_file.h"

namespace CLI {
class App;
}

namespace fullbore::cli {

// For CSV, which cannot carry a mark of ours: its header line is that of one of our tables.
extern const ResultFormat kCsvResult;

// The options of one subcommand. `help` says what is written; that "-" is standard output is added.
void AddResult(CLI::App& app, ResultFile& file, const std::string& help);
void AddResult(CLI::App& app, const std::string& names, ResultFile& file, const std::string& help);
void AddForce(CLI::App& app, bool& force);

// Judges the files, those that are wanted, before a command begins. An error, for exit status 2, where one would be
// refused, is an input, means a run of `runs_directory`, or where two of them would be the same.
Result<void> JudgeResults(std::initializer_list<ResultFile*> files, const InputFiles& inputs, bool force,
                          const std::string& runs_directory = "");

// Whether one of them goes to standard output, which is then not for people.
bool AnyToStandardOutput(std::initializer_list<const ResultFile*> files);

Result<void> WriteJson(const ResultFile& file, const nlohmann::ordered_json& json);

// The words that name a run or traces, as inputs: a run by its id, too.
InputFiles InputsNamed(const std::string& runs_directory, const std::vector<std::string>& words);

// A hint for a command line that is wrong because an option for a file took another word for its name, or got none.
std::string HintForResults(const CLI::App& app, const std::string& problem);

}  // namespace fullbore::cli
