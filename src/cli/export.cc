// fullbore export: a window of a trace, with our shares and findings as tracks, for ui.perfetto.dev; or a run as a
// table, or to a tracker.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <optional>

#include "base/print.h"
#include "base/text.h"
#include "cli/export_run.h"
#include "cli/export_tracker.h"
#include "cli/output.h"
#include "cli/results.h"
#include "cli/subcommand.h"
#include "cli/traces.h"
#include "cli/what_if.h"
#include "explain/analyze/rank_trace.h"
#include "explain/diagnose/diagnose.h"
#include "explain/replay/predict.h"
#include "explain/replay/ranks.h"
#include "report/export/moment.h"
#include "report/export/perfetto.h"

namespace fullbore::cli {

namespace {

using exporting::Moment;
using exporting::Window;

constexpr std::string_view kPerfetto = "perfetto";

struct Flags {
  std::vector<std::string> traces;
  std::vector<std::string> to;  // the format, and a moment where --to is used for --until
  std::string from, until;
  std::vector<std::string> what_if;
  std::string directory = kDefaultRunsDirectory;
  ResultFile output{"-o", kTraceResult};
  bool force = false, follow = false;
};

// What the first pass over a trace leaves for the second: how its times map to the recording's clock.
struct Clock {
  int64_t first_event_ns = 0;
  std::optional<int64_t> first_step_end_ns;
  std::vector<int64_t> step_numbers;  // as the trace names them
  int64_t shift_ns = 0;
};

struct Loaded {
  record::Recording recording;
  std::map<int, Clock> clocks;  // by rank
  int64_t begin_ns = 0;         // the first event of any rank, on the recording's clock

  const record::Stage& stage() const { return recording.stages.front(); }
};

Result<Loaded> Load(const std::vector<std::string>& traces) {
  Loaded loaded;
  ReadingLine line;
  ingest::TraceOptions options = TraceOptionsFor(&line, false);
  options.look = [&](const timeline::DeviceTrace& trace) {
    Clock& clock = loaded.clocks[trace.rank.value_or(0)];
    const analyze::RankTrace rank(trace);
    clock.first_event_ns = rank.begin_ns();
    const auto& steps = rank.steps().steps;
    if (!steps.empty()) clock.first_step_end_ns = steps.front().end_ns;
    if (steps.size() != trace.steps.size()) return;
    for (const timeline::StepMark& mark : trace.steps) clock.step_numbers.push_back(mark.number);
  };
  auto recording = ingest::ReadTraces(traces, options);
  if (!recording) return recording.error();
  loaded.recording = std::move(*recording);
  loaded.begin_ns = std::numeric_limits<int64_t>::max();
  for (const record::RankInfo& rank : loaded.stage().ranks) {
    Clock& clock = loaded.clocks[rank.rank];
    if (!rank.steps.empty() && clock.first_step_end_ns)
      clock.shift_ns = rank.steps.front().end_ns - *clock.first_step_end_ns;
    loaded.begin_ns = std::min(loaded.begin_ns, clock.first_event_ns + clock.shift_ns);
  }
  return loaded;
}

Result<const record::Step*> StepNumbered(const Loaded& loaded, int64_t number) {
  const record::RankInfo& lead = loaded.stage().ranks.front();
  const std::vector<int64_t>& numbers = loaded.clocks.at(lead.rank).step_numbers;
  for (const record::Step& step : lead.steps) {
    const auto index = static_cast<size_t>(step.index);
    if ((index < numbers.size() ? numbers[index] : step.index) == number) return &step;
  }
  if (lead.steps.empty())
    return Error{ErrorCode::kInvalidArgument, "the trace has no steps", "give times: 200ms"};
  const int64_t first = numbers.empty() ? 0 : numbers.front();
  const int64_t last = numbers.empty() ? lead.steps.back().index : numbers.back();
  return Error{ErrorCode::kInvalidArgument, fmt::format("the trace has no step {}", number),
               fmt::format("its steps are {} to {}", first, last)};
}

int64_t BeginOf(const record::Step& step) { return step.end_ns - step.wall_ns; }

// The steps that can be run again with something changed.
bool Replays(const record::RankInfo& rank, const record::Step& step) {
  if (!rank.graph || rank.graph->step_ends.size() < 2) return false;
  const int64_t at = step.index - rank.graph->first_step;
  return at >= 0 && at + 1 < static_cast<int64_t>(rank.graph->step_ends.size());
}

// The step that the page shows, too; with --what-if one that can be replayed.
Window TypicalStep(const Flags& flags, const Loaded& loaded) {
  const record::RankInfo& lead = loaded.stage().ranks.front();
  Window window{loaded.begin_ns, loaded.stage().end_ns, loaded.begin_ns};
  if (lead.steps.size() < 2 || !lead.timeline) return window;
  const record::Step* shown = &lead.steps.front();
  for (const record::Step& step : lead.steps) {
    if (!flags.what_if.empty() && !Replays(lead, step)) continue;
    shown = &step;
    if (step.index >= lead.timeline->step) break;
  }
  window.begin_ns = BeginOf(*shown);
  window.end_ns = shown->end_ns;
  return window;
}

Result<Window> WindowOf(const Flags& flags, const Loaded& loaded) {
  if (flags.from.empty() && flags.until.empty()) return TypicalStep(flags, loaded);
  Window window{loaded.begin_ns, loaded.stage().end_ns, loaded.begin_ns};
  const auto place = [&](const std::string& text, bool begin, int64_t* ns) -> Result<void> {
    if (text.empty()) return {};
    const auto moment = exporting::ParseMoment(text);
    if (!moment) return moment.error();
    *ns = loaded.begin_ns + moment->ns;
    if (!moment->step) return {};
    const auto step = StepNumbered(loaded, *moment->step);
    if (!step) return step.error();
    *ns = begin ? (*step)->end_ns - (*step)->wall_ns : (*step)->end_ns;
    return {};
  };
  if (auto placed = place(flags.from, true, &window.begin_ns); !placed) return placed.error();
  if (auto placed = place(flags.until, false, &window.end_ns); !placed) return placed.error();
  if (window.end_ns <= window.begin_ns || window.begin_ns >= loaded.stage().end_ns) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("the window from {} to {} contains no events",
                             FormatDuration(window.begin_ns - loaded.begin_ns),
                             FormatDuration(window.end_ns - loaded.begin_ns)),
                 fmt::format("the trace lasts {}", FormatDuration(loaded.stage().end_ns - loaded.begin_ns))};
  }
  return window;
}

// One of many ranks: what its steps waited for was let go (ingest/gathered_ranks.h).
bool HasNoGraphLeft(const record::RankInfo& rank) { return rank.device_activity && !rank.graph; }

void SayWhatIsNotReplayed(const record::Stage& stage) {
  const auto ranks = std::ranges::count_if(stage.ranks, HasNoGraphLeft);
  if (ranks == 0) return;
  Print(stderr, "{} of {} ranks are not replayed: of so many, only a few are kept in full\n", ranks,
        stage.ranks.size());
}

// The first step that begins in the window and can be replayed.
Result<int64_t> StepToReplay(const record::RankInfo& rank, const Window& window) {
  for (const record::Step& step : rank.steps) {
    if (BeginOf(step) >= window.begin_ns && BeginOf(step) < window.end_ns && Replays(rank, step))
      return step.index;
  }
  if (!rank.graph || rank.graph->step_ends.size() < 2)
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("rank {} has no steps that can be replayed", rank.rank), "leave --what-if out"};
  return Error{ErrorCode::kInvalidArgument, "no step that can be replayed begins in the window",
               fmt::format("the first {} steps can be: leave --from and --until out, or choose among them",
                           rank.graph->first_step + static_cast<int64_t>(rank.graph->step_ends.size()) - 1)};
}

// Adds what the changes would make of the rank's steps, made on all ranks; says which of them cannot be made.
Result<void> AddReplay(const std::vector<const replay::Change*>& changes, const Window& window,
                       const timeline::DeviceTrace& trace, const Loaded& loaded, const record::RankInfo& rank,
                       exporting::PerfettoFile* file) {
  const auto step = StepToReplay(rank, window);
  if (!step) return step.error();
  std::vector<const record::StepGraph*> graphs;
  for (const record::RankInfo& other : loaded.stage().ranks) {
    if (other.graph) graphs.push_back(&*other.graph);
  }
  const auto ranks = replay::RanksAround(*rank.graph, graphs);
  std::vector<const replay::Change*> made;
  std::string names;
  for (const replay::Change* change : changes) {
    if (const auto why = replay::WhyNot(*change, ranks)) {
      Print(stderr, "rank {}: {} cannot be made here: {}\n", rank.rank, change->id(), *why);
      continue;
    }
    made.push_back(change);
    names += (names.empty() ? "" : ", ") + std::string(change->id());
  }
  if (made.empty()) return {};
  std::vector<record::StepGraph> changed;
  for (const record::StepGraph* graph : ranks) changed.push_back(replay::Changed(*graph, made));
  std::vector<const record::StepGraph*> all;
  for (const record::StepGraph& graph : changed) all.push_back(&graph);
  file->AddReplay(trace, rank, loaded.clocks.at(rank.rank).step_numbers, all, *step, names);
  return {};
}

Result<void> Write(const ResultFile& output, const exporting::PerfettoFile& file) {
  const std::string json = file.Json();
  constexpr size_t kMaxBytes = std::numeric_limits<uint32_t>::max();  // of one call of zlib
  if (json.size() > kMaxBytes) {
    return Error{ErrorCode::kUnsupported,
                 fmt::format("the window would be {} of JSON, too much for a viewer",
                             FormatBytes(static_cast<double>(json.size()))),
                 "choose a smaller one: --from 1s --until 2s"};
  }
  return output.Write(output.path.ends_with(".gz") ? exporting::Gzip(json, kTraceMark) : json);
}

int Export(Flags flags) {
  std::string format;
  for (const std::string& to : flags.to) {  // --to FORMAT, and --to T for --until T
    if (to != kPerfetto && exporting::ParseMoment(to).ok() && flags.until.empty())
      flags.until = to;
    else
      format = to;
  }
  if (watch::NamesATracker(format))
    return ExportToTracker({flags.traces, flags.directory, format, flags.follow});
  if (flags.follow) {
    return Fail({ErrorCode::kInvalidArgument, fmt::format("--follow is for trackers, not for '{}'", format),
                 "--to tensorboard:DIR, mlflow, wandb or otlp:URL"},
                kExitUsage);
  }
  if (IsTableOfRun(format))
    return ExportRun({flags.traces, flags.directory, format, flags.output.path, flags.force});
  if (format != kPerfetto) {
    return Fail(
        {ErrorCode::kInvalidArgument, fmt::format("cannot export to '{}'", format),
         "traces: --to perfetto; runs: --to csv, steps-csv, tensorboard:DIR, mlflow, wandb or otlp:URL"},
        kExitUsage);
  }
  if (!MeansTraces(flags.traces)) {
    return Fail(
        {ErrorCode::kInvalidArgument, fmt::format("'{}' is a recorded run, not a trace", flags.traces[0]),
         "a run does not keep individual events: record a trace with torch.profiler, or look at the run's "
         "HTML report, or take its numbers: --to csv"},
        kExitUsage);
  }
  if (!flags.output.wanted())
    flags.output.path =
        std::filesystem::path(flags.traces[0]).filename().stem().stem().string() + ".window.json.gz";
  if (auto judged = JudgeResults({&flags.output}, InputsNamed("", flags.traces), flags.force); !judged)
    return Fail(judged.error(), kExitUsage);
  const auto changes = ChangesNamed(flags.what_if);
  if (!changes) return Fail(changes.error(), kExitUsage);
  const auto loaded = Load(flags.traces);
  if (!loaded) return Fail(loaded.error(), StatusOf(loaded.error()));
  const auto window = WindowOf(flags, *loaded);
  if (!window) return Fail(window.error(), kExitUsage);
  exporting::PerfettoFile file(*window);
  file.AddFindings(diagnose::Diagnose(loaded->recording));
  Result<void> replayed;
  const auto messages = [&] {
    ReadingLine line;
    return ingest::VisitTraces(flags.traces, TraceOptionsFor(&line, false),
                               [&](timeline::DeviceTrace& trace, const std::string&) {
                                 for (const record::RankInfo& rank : loaded->stage().ranks) {
                                   if (rank.rank != trace.rank) continue;
                                   const Clock& clock = loaded->clocks.at(rank.rank);
                                   file.AddRank(trace, rank, clock.shift_ns, clock.step_numbers);
                                   if (changes->empty() || !replayed || HasNoGraphLeft(rank)) continue;
                                   replayed = AddReplay(*changes, *window, trace, *loaded, rank, &file);
                                 }
                               });
  }();
  if (!messages) return Fail(messages.error(), StatusOf(messages.error()));
  if (!replayed) return Fail(replayed.error(), kExitUsage);
  if (!changes->empty()) SayWhatIsNotReplayed(loaded->stage());
  if (auto written = Write(flags.output, file); !written) return Fail(written.error(), kExitFailure);
  Print(stderr, "{}: {} to {} of {}, {} events; open it at https://ui.perfetto.dev\n", flags.output.path,
        FormatDuration(window->begin_ns - loaded->begin_ns),
        FormatDuration(window->end_ns - loaded->begin_ns),
        FormatDuration(loaded->stage().end_ns - loaded->begin_ns),
        FormatCount(static_cast<double>(file.events())));
  return 0;
}

Handler Define(CLI::App& app, const Invocation&) {
  auto flags = std::make_shared<Flags>();
  app.add_option("RUN|TRACE", flags->traces,
                 "Traces, as for explain: files, directories, several ranks' files. Or, for a table, a run")
      ->required();
  app.add_option(
         "--to", flags->to,
         "The format: perfetto (Chrome JSON, for ui.perfetto.dev and chrome://tracing); of a run, csv (its\n"
         "readings, a line each) or steps-csv (its steps, a line for each second, and for each that was kept),\n"
         "or a tracker: tensorboard:DIR, mlflow[:URI], wandb[:PROJECT], otlp:URL (docs/trackers.md)")
      ->required()
      ->allow_extra_args(false)
      ->type_name("FORMAT");
  app.add_option("--from", flags->from,
                 "Where the window begins: 1.5s, 200ms or 30us from the first event, or step:12\n"
                 "(default: the beginning of the trace with --until, else a typical step)")
      ->type_name("T");
  app.add_option("--until", flags->until,
                 "Where it ends: a time, or step:12 for its end (default: the end of the trace)")
      ->type_name("T");
  app.add_option("--what-if", flags->what_if,
                 "Also what the replay makes of these changes, beside what was recorded:\n" + ListOfChanges())
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("CHANGE");
  AddResult(
      app, "-o,--output", flags->output,
      "The file to write, compressed if it ends in .gz (default: TRACE.window.json.gz, and - for a table)");
  app.add_flag("--follow", flags->follow,
               "To a tracker: goes on until the run ends, as `fullbore run --log` does");
  app.add_option("--dir", flags->directory, "Where runs are kept")
      ->type_name("DIR")
      ->default_str(kDefaultRunsDirectory);
  AddForce(app, flags->force);
  return [flags] { return Export(*flags); };
}

}  // namespace

const Subcommand kExport = {
    "export",
    "Cut a window out of a trace to look at, with our shares and findings as tracks; make tables of a run, or send it to a tracker",
    "fullbore export trace.json.gz --to perfetto --from step:12 --until step:14\n"
    "  fullbore export trace.json.gz --to perfetto --what-if no-sync,graphs\n"
    "  fullbore export rank*.json.gz --to perfetto --from 1.5s --until 1.8s -o window.json.gz\n"
    "  fullbore export last --to csv -o readings.csv\n"
    "  fullbore export last --to mlflow:http://127.0.0.1:5000",
    Define};

}  // namespace fullbore::cli
