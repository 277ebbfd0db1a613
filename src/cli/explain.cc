#include <fmt/format.h>

#include <memory>

#include "cli/output.h"
#include "cli/subcommand.h"
#include "cli/traces.h"
#include "record/run_reader.h"

namespace fullbore::cli {

namespace {

struct Flags {
  std::vector<std::string> what;
  std::string directory = kDefaultRunsDirectory;
  std::string json, html;
  bool quiet = false;
  bool like_hta = false;
};

Result<record::Recording> ReadRecordedRun(const Flags& flags) {
  const auto path = FindRun(flags.directory, flags.what.empty() ? "" : flags.what[0]);
  if (!path) return path.error();
  return record::ReadRun(*path);
}

int Explain(const Flags& flags) {
  const bool traces = MeansTraces(flags.what);
  if (flags.like_hta && !traces) {
    return Fail({ErrorCode::kInvalidArgument, "--like-hta is for traces, not for runs",
                 "fullbore explain --like-hta trace.json.gz"},
                kExitUsage);
  }
  const auto recording = traces ? ReadTraces(flags.what, flags.like_hta) : ReadRecordedRun(flags);
  if (!recording) {
    const ErrorCode code = recording.error().code;
    const bool usage = code == ErrorCode::kNotFound || code == ErrorCode::kInvalidArgument;
    return Fail(recording.error(), usage ? kExitUsage : kExitFailure);
  }
  ReportTargets targets;
  targets.json = flags.json;
  targets.html = flags.html;
  targets.terminal = !flags.quiet && flags.json != "-";
  if (auto written = WriteReports(*recording, targets); !written) return Fail(written.error(), kExitFailure);
  return 0;
}

Handler Define(CLI::App& app, const Invocation&) {
  auto flags = std::make_shared<Flags>();
  app.add_option("RUN|TRACE", flags->what,
                 "A run (its id, the beginning of one, or a run file; default: the newest), or traces:\n"
                 "PyTorch-profiler JSON (plain, .gz, .zst, in a .tar), Nsight Systems exports (.sqlite),\n"
                 "directories of them; several files are the ranks of one run");
  app.add_option("-o,--output", flags->directory, "Where runs are kept")
      ->type_name("DIR")
      ->default_str(kDefaultRunsDirectory);
  app.add_option("--json", flags->json, "Write the report object to this file; - is standard output")
      ->type_name("FILE");
  app.add_option("--html", flags->html, "Write the HTML report to this file")->type_name("FILE");
  app.add_flag("--quiet,-q", flags->quiet, "Print nothing on the terminal");
  app.add_flag("--like-hta", flags->like_hta,
               "Traces: count as Holistic Trace Analysis does (without the last ProfilerStep, in whole\n"
               "microseconds, with its classes of kernels), to compare figures with it");
  return [flags] { return Explain(*flags); };
}

}  // namespace

const Subcommand kExplain = {"explain",
                             "Say where the time of a recorded run went, or of traces that others recorded",
                             "fullbore explain last --html report.html\n  fullbore explain rank0.json.gz "
                             "rank1.json.gz",
                             Define};

}  // namespace fullbore::cli
