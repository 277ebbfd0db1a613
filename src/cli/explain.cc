#include <filesystem>
#include <memory>

#include "cli/output.h"
#include "cli/subcommand.h"
#include "record/run_reader.h"

namespace fullbore::cli {

namespace {

struct Flags {
  std::string run;
  std::string directory = kDefaultRunsDirectory;
  std::string json, html;
  bool quiet = false;
};

int Explain(const Flags& flags) {
  const auto path = FindRun(flags.directory, flags.run);
  if (!path) return Fail(path.error(), kExitUsage);
  const auto recording = record::ReadRun(*path);
  if (!recording) return Fail(recording.error(), kExitFailure);
  ReportTargets targets;
  targets.json = flags.json;
  targets.html = flags.html;
  targets.terminal = !flags.quiet && flags.json != "-";
  if (auto written = WriteReports(*recording, targets); !written) return Fail(written.error(), kExitFailure);
  return 0;
}

Handler Define(CLI::App& app, const Invocation&) {
  auto flags = std::make_shared<Flags>();
  app.add_option("RUN", flags->run, "A run's id or its beginning, or a run file (default: the newest run)");
  app.add_option("-o,--output", flags->directory, "Where runs are kept")
      ->type_name("DIR")
      ->default_str(kDefaultRunsDirectory);
  app.add_option("--json", flags->json, "Write the report object to this file; - is standard output")
      ->type_name("FILE");
  app.add_option("--html", flags->html, "Write the HTML report to this file")->type_name("FILE");
  app.add_flag("--quiet,-q", flags->quiet, "Print nothing on the terminal");
  return [flags] { return Explain(*flags); };
}

}  // namespace

const Subcommand kExplain = {"explain", "Print the report of a recorded run again",
                             "fullbore explain last --html report.html", Define};

}  // namespace fullbore::cli
