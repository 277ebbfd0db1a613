#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <utility>

#include "base/text.h"
#include "cli/explain_pid.h"
#include "cli/explain_snapshot.h"
#include "cli/output.h"
#include "cli/results.h"
#include "cli/sections.h"
#include "cli/subcommand.h"
#include "cli/trace_page.h"
#include "cli/traces.h"
#include "cli/trials.h"
#include "cli/what_if.h"
#include "explain/diagnose/unslowed.h"
#include "record/run_reader.h"

namespace fullbore::cli {

namespace {

struct Flags {
  std::vector<std::string> what;
  std::string directory = kDefaultRunsDirectory;
  ResultFile json{"--json", kJsonResult}, html{"--html", kHtmlResult};
  bool force = false;
  std::vector<std::string> what_if;
  std::string step_time;
  bool quiet = false;
  int64_t pid = 0;
  std::string seconds;  // of --for
  SectionFlags sections;
};

Result<record::Recording> ReadRecordedRun(const Flags& flags) {
  const auto path = FindRun(flags.directory, flags.what.empty() ? "" : flags.what[0]);
  if (!path) return path.error();
  return record::ReadRun(*path);
}

Result<void> CheckFlags(const Flags& flags, bool traces) {
  if (traces) {
    if (auto refused = RefuseRuns(flags.what); !refused) return refused;
  }
  const char* only_traces = flags.sections.like_hta         ? "--like-hta"
                            : !flags.sections.names.empty() ? "--section"
                                                            : nullptr;
  if (only_traces != nullptr && !traces) {
    return Error{ErrorCode::kInvalidArgument, fmt::format("{} is for traces, not for runs", only_traces),
                 fmt::format("fullbore explain {} ... trace.json.gz", only_traces)};
  }
  if (!flags.what_if.empty() && !flags.sections.names.empty()) {
    return Error{ErrorCode::kInvalidArgument, "--what-if is for the report, not for sections",
                 "fullbore explain --what-if pin,graphs trace.json.gz"};
  }
  if (!flags.step_time.empty() && (!traces || !flags.sections.names.empty())) {
    return Error{ErrorCode::kInvalidArgument,
                 "--step-time is for the report on traces: a run knows its steps without the profiler",
                 "fullbore explain --step-time 120ms trace.json.gz"};
  }
  if (flags.sections.csv.wanted() && flags.sections.names.empty()) {
    return Error{ErrorCode::kInvalidArgument, "--csv writes a section, and none is named",
                 "add --section NAME; the sections are " + NamesOfSections()};
  }
  if (flags.html.wanted() && !flags.sections.names.empty()) {
    return Error{ErrorCode::kInvalidArgument, "--html is for the report, not for sections",
                 "leave --section out, or write --csv or --json"};
  }
  return {};
}

// A process instead of a run: what it records is then explained as any other.
Result<record::Recording> RecordProcess(const Flags& flags) {
  const auto path = RecordPid({flags.pid, flags.seconds, flags.directory, flags.quiet});
  if (!path) return path.error();
  return record::ReadRun(*path);
}

Result<void> CheckPid(const Flags& flags) {
  if (flags.pid == 0 && flags.seconds.empty()) return {};
  if (flags.pid == 0) {
    return Error{ErrorCode::kInvalidArgument, "--for says how long to look at a process, and none is named",
                 "fullbore explain --pid PID --for " + flags.seconds};
  }
  if (flags.what.empty() && flags.sections.names.empty() && flags.what_if.empty()) return {};
  return Error{ErrorCode::kInvalidArgument, "--pid is for a process that runs, not for runs or traces",
               fmt::format("fullbore explain --pid {}", flags.pid)};
}

// What is said of traces and processes has no place beside a memory snapshot.
Result<void> CheckSnapshot(const Flags& flags) {
  const char* other = flags.sections.like_hta         ? "--like-hta"
                      : !flags.sections.names.empty() ? "--section"
                      : !flags.step_time.empty()      ? "--step-time"
                                                      : nullptr;
  if (other == nullptr) return {};
  return Error{ErrorCode::kInvalidArgument, fmt::format("{} is for traces, not for memory snapshots", other),
               fmt::format("fullbore explain {}", flags.what[0])};
}

int Explain(Flags& flags) {
  const InputFiles inputs = flags.pid != 0 ? InputFiles() : InputsNamed(flags.directory, flags.what);
  if (auto judged =
          JudgeResults({&flags.json, &flags.html, &flags.sections.csv}, inputs, flags.force, flags.directory);
      !judged)
    return Fail(judged.error(), kExitUsage);
  if (const auto usable = CheckPid(flags); !usable) return Fail(usable.error(), kExitUsage);
  if (flags.pid == 0 && MeansSnapshot(flags.what)) {
    if (const auto usable = CheckSnapshot(flags); !usable) return Fail(usable.error(), kExitUsage);
    return ExplainSnapshot({flags.what[0], flags.json, flags.html, flags.what_if, flags.quiet});
  }
  const bool traces = MeansTraces(flags.what);
  if (const auto usable = CheckFlags(flags, traces); !usable) return Fail(usable.error(), kExitUsage);
  if (!flags.sections.names.empty()) {
    flags.sections.json = flags.json;
    return ExplainSections(flags.what, flags.sections);
  }
  const auto memory_what_if = MemoryChangeNamed(traces ? std::vector<std::string>() : flags.what_if);
  if (!memory_what_if) return Fail(memory_what_if.error(), kExitUsage);
  const auto what_if = ChangesNamed(traces ? flags.what_if : std::vector<std::string>());
  if (!what_if) return Fail(what_if.error(), kExitUsage);
  const Result<double> step_s =
      flags.step_time.empty() ? Result<double>(0.0) : ParsePositiveSeconds("--step-time", flags.step_time);
  if (!step_s) return Fail(step_s.error(), kExitUsage);
  TracePage trace_page;
  auto recording =
      flags.pid != 0 ? RecordProcess(flags)
      : traces ? ReadTraces(flags.what, flags.sections.like_hta, flags.html.wanted() ? &trace_page : nullptr)
               : ReadRecordedRun(flags);
  if (!recording) return Fail(recording.error(), StatusOf(recording.error()));
  if (*step_s > 0) recording = diagnose::Unslowed(std::move(*recording), *step_s * 1e9);
  ReportTargets targets;
  targets.json = flags.json;
  targets.html = flags.html;
  targets.what_if = *what_if;
  targets.memory_what_if = *memory_what_if;
  if (traces) targets.trace_page = &trace_page;
  targets.terminal = !flags.quiet && !AnyToStandardOutput({&flags.json, &flags.html});
  if (auto written = WriteReports(std::move(*recording), targets); !written)
    return Fail(written.error(), kExitFailure);
  return 0;
}

Handler Define(CLI::App& app, const Invocation&) {
  auto flags = std::make_shared<Flags>();
  app.add_option(
      "RUN|TRACE", flags->what,
      "A run (its id, the beginning of one, or a run file; default: the newest), or traces:\n"
      "PyTorch-profiler JSON (also packed or in archives), Nsight Systems exports (.sqlite),\n"
      "directories of them; several files are the ranks of one run. Or a memory snapshot of PyTorch's");
  app.add_option("--pid", flags->pid,
                 "A training that already runs: look at it and its children from outside, with py-spy")
      ->check([](const std::string& text) -> std::string {
        const auto pid = ParseInt(text);
        return pid && *pid > 0 ? "" : fmt::format("'{}' is not the number of a process", text);
      })
      ->type_name("PID");
  app.add_option("--for", flags->seconds, "With --pid: how long; Ctrl-C ends it early")
      ->default_str("30s")
      ->type_name("TIME");
  app.add_option("-o,--output", flags->directory, "Where runs are kept")
      ->type_name("DIR")
      ->default_str(kDefaultRunsDirectory);
  AddResult(app, flags->json, "Write the report object to this file");
  AddResult(app, flags->html, "Write the HTML report to this file");
  app.add_option(
         "--what-if", flags->what_if,
         "Traces: also predict the step with these changes made, one after the other:\n" + ListOfChanges() +
             "\nRuns: batch=64,seq=4096, or one of them: what that would need of the device's memory\n"
             "Memory snapshots: batch=2x, what a batch of twice the size would take")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("CHANGE");
  app.add_option("--step-time", flags->step_time,
                 "Traces: what a step takes without the profiler, by a clock of yours. Else what it cost is\n"
                 "estimated, and ranges are wide where that matters")
      ->type_name("TIME");
  app.add_flag("--quiet,-q", flags->quiet, "Print nothing to the terminal");
  app.add_option("--section", flags->sections.names,
                 "Traces: print this table instead of the verdict; may be given several times, or as a,b:\n" +
                     ListOfSections())
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("NAME");
  AddResult(app, flags->sections.csv, "Write the section to this file");
  app.add_option("--rows", flags->sections.rows, "How many rows of a section to show on the terminal")
      ->default_val(kSectionRows)
      ->type_name("N");
  app.add_flag("--like-hta", flags->sections.like_hta,
               "Traces: count as Holistic Trace Analysis does (without the last ProfilerStep, in whole\n"
               "microseconds, with its classes of kernels), to compare figures with it");
  AddForce(app, flags->force);
  return [flags] { return Explain(*flags); };
}

}  // namespace

const Subcommand kExplain = {
    "explain",
    "Say where the time went in a recorded run, or in traces that other tools recorded; and where the memory went",
    "fullbore explain last --html report.html\n  fullbore explain rank0.json.gz "
    "rank1.json.gz\n  fullbore explain --section kernels --csv kernels.csv trace.json.gz\n  fullbore explain "
    "--pid 4711\n  fullbore explain last --what-if batch=64\n  fullbore explain snapshot.pickle --what-if batch=2x",
    Define};

}  // namespace fullbore::cli
