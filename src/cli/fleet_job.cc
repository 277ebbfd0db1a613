#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iterator>
#include <memory>

#include "base/captured.h"
#include "base/clock.h"
#include "base/print.h"
#include "base/printable.h"
#include "base/text.h"
#include "cli/output.h"
#include "cli/results.h"
#include "cli/subcommand.h"
#include "fleet/job.h"
#include "fleet/job_json.h"
#include "fleet/job_runs.h"
#include "fleet/job_terminal.h"
#include "fleet/page/job_page.h"

namespace fullbore::cli {

namespace {

struct Flags {
  std::string id, database;
  std::vector<std::string> directories;
  ResultFile json{"--json", kJsonResult}, html{"--html", kHtmlResult};
  bool sacct = false, force = false;
};

constexpr int64_t kPatienceNs = 30 * kNsPerSecond;

// `run`: the job's newest. One that was asked for by its own id is not all of its job.
Result<std::vector<fleet::Allocation>> AskSacct(const std::string& id, const fleet::RunAccount& run) {
  if (run.job != id || !ParseInt(id))
    return Error{ErrorCode::kInvalidArgument, fmt::format("'{}' is no job of Slurm's", id), ""};
  std::vector<std::string> words = {"env", "SLURM_TIME_FORMAT=%s", "sacct"};
  std::ranges::move(fleet::SacctArguments(run.job), std::back_inserter(words));
  const auto done = RunAndCapture(words, kPatienceNs);
  if (!done) return done.error();
  if (done->status != 0)
    return Error{ErrorCode::kUnavailable, fmt::format("sacct: {}", Trim(done->errors.substr(0, 300))), ""};
  auto found = fleet::AllocationsIn(done->output, run.job, run.user);
  if (found.empty())
    return Error{ErrorCode::kNotFound, fmt::format("sacct knows no job {} of '{}'", run.job, run.user), ""};
  return found;
}

// Where there is no answer, what the runs themselves say is told.
std::vector<fleet::Allocation> AllocationsOf(const std::string& id,
                                             const std::vector<fleet::RunAccount>& runs) {
  auto found = AskSacct(id, *std::ranges::max_element(runs, {}, &fleet::RunAccount::begin_unix_ns));
  if (found) return std::move(*found);
  Error error = found.error();
  error.text += ": paid is what its runs were given, and the time between them";
  error.hint = "run this where `sacct` answers for that cluster";
  Fail(error, 0);
  return {};
}

int Run(Flags& flags) {
  InputFiles inputs;
  if (!flags.database.empty()) inputs.Add(flags.database);
  if (auto judged = JudgeResults({&flags.json, &flags.html}, inputs, flags.force); !judged)
    return Fail(judged.error(), kExitUsage);
  if (flags.directories.empty()) flags.directories = {kDefaultRunsDirectory};
  auto read = fleet::ReadJob(flags.id, flags.directories, flags.database);
  if (!read) return Fail(read.error(), StatusOf(read.error()));
  for (const std::string& text : read->left_out)
    Fail({ErrorCode::kInvalidArgument, "left out: " + text, ""}, 0);
  auto allocations = flags.sacct ? AllocationsOf(flags.id, read->runs) : std::vector<fleet::Allocation>();
  const fleet::Job job = fleet::JobOf(std::move(read->runs), std::move(allocations));
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
  app.add_flag("--sacct", flags->sacct,
               "Ask Slurm's accounting when the job held its devices: all of that time was paid");
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
