#include "cli/export_run.h"

#include <fmt/format.h>

#include <limits>

#include "cli/output.h"
#include "cli/results.h"
#include "cli/subcommand.h"
#include "cli/traces.h"
#include "record/run_reader.h"
#include "report/run_csv.h"

namespace fullbore::cli {

namespace {

constexpr std::string_view kReadings = "csv", kSteps = "steps-csv";
constexpr size_t kUnlimited = std::numeric_limits<size_t>::max();

}  // namespace

bool IsTableOfRun(std::string_view format) { return format == kReadings || format == kSteps; }

int ExportRun(const RunExport& wanted) {
  if (wanted.runs.size() != 1 || MeansTraces(wanted.runs)) {
    return Fail(
        {ErrorCode::kInvalidArgument, fmt::format("--to {} is for one run, not for traces", wanted.format),
         "tables of traces: fullbore explain --section NAME --csv FILE"},
        kExitUsage);
  }
  ResultFile file("-o", kCsvResult);
  file.path = wanted.output.empty() ? "-" : wanted.output;
  if (auto judged =
          JudgeResults({&file}, InputsNamed(wanted.directory, wanted.runs), wanted.force, wanted.directory);
      !judged)
    return Fail(judged.error(), kExitUsage);
  const auto path = FindRun(wanted.directory, wanted.runs[0]);
  if (!path) return Fail(path.error(), StatusOf(path.error()));
  const auto recording = record::ReadRun(*path);
  if (!recording) return Fail(recording.error(), StatusOf(recording.error()));
  const std::string table =
      wanted.format == kSteps ? report::StepsCsv(*recording) : report::SeriesCsv(*recording, kUnlimited);
  if (auto written = file.Write(table); !written) return Fail(written.error(), kExitFailure);
  return 0;
}

}  // namespace fullbore::cli
