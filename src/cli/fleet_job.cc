#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "base/print.h"
#include "base/printable.h"
#include "cli/job_runs.h"
#include "cli/output.h"
#include "cli/results.h"
#include "cli/subcommand.h"
#include "fleet/job.h"
#include "fleet/job_json.h"
#include "fleet/job_terminal.h"
#include "fleet/page/job_page.h"

namespace fullbore::cli {

namespace {

struct Flags {
  std::string id, database;
  std::vector<std::string> directories;
  ResultFile json{"--json", kJsonResult}, html{"--html", kHtmlResult};
  bool force = false;
};

int Run(Flags& flags) {
  InputFiles inputs;
  if (!flags.database.empty()) inputs.Add(flags.database);
  if (auto judged = JudgeResults({&flags.json, &flags.html}, inputs, flags.force); !judged)
    return Fail(judged.error(), kExitUsage);
  if (flags.directories.empty()) flags.directories = {kDefaultRunsDirectory};
  auto read = ReadJob(flags.id, flags.directories, flags.database);
  if (!read) return Fail(read.error(), StatusOf(read.error()));
  for (const std::string& text : read->left_out)
    Fail({ErrorCode::kInvalidArgument, "left out: " + text, ""}, 0);
  const fleet::Job job = fleet::JobOf(std::move(read->runs));
  if (flags.json.wanted()) {
    if (auto written = WriteJson(flags.json, ToJson(job)); !written)
      return Fail(written.error(), kExitFailure);
  }
  if (flags.html.wanted()) {
    if (auto written = flags.html.Write(fleet::ToHtml(job)); !written)
      return Fail(written.error(), kExitFailure);
  }
  if (!AnyToStandardOutput({&flags.json, &flags.html})) PrintLaidOut(stdout, ToText(job, LocaleIsUtf8()));
  return 0;
}

Handler Define(CLI::App& app, const Invocation&) {
  auto flags = std::make_shared<Flags>();
  app.add_option("JOB", flags->id, "The job's id as the scheduler gave it, or the id of one run")->required();
  auto* directories = app.add_option(
      "DIR", flags->directories,
      fmt::format("Directories that hold its runs, at any depth (default: {})", kDefaultRunsDirectory));
  app.add_option(
         "--from", flags->database,
         "A database, as `fleet collect` wrote it, that knows where its runs are: no directory is searched")
      ->type_name("FILE")
      ->excludes(directories);
  AddResult(app, flags->json, "Write the job object to this file");
  AddResult(app, flags->html, "Write a page with the waterfall to this file");
  AddForce(app, flags->force);
  return [flags] { return Run(*flags); };
}

}  // namespace

const Subcommand kFleetJob = {
    "job", "One job over its restarts and machines, from the time that was paid to useful work",
    "fullbore fleet job 4711 /shared/runs", Define};

}  // namespace fullbore::cli
