// A recorded run as a table, for `fullbore export RUN --to csv`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fullbore::cli {

// "csv", the readings; "steps-csv", the steps.
bool IsTableOfRun(std::string_view format);

struct RunExport {
  std::vector<std::string> runs;  // one, as FindRun knows it
  std::string directory;
  std::string format;
  std::string output;  // a file; empty: standard output
  bool force = false;
};

// The exit status.
int ExportRun(const RunExport& wanted);

}  // namespace fullbore::cli
