#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>

#include "base/clock.h"
#include "base/print.h"
#include "base/printable.h"
#include "base/secrets.h"
#include "base/text.h"
#include "cli/output.h"
#include "cli/results.h"
#include "cli/runs_removal.h"
#include "cli/subcommand.h"
#include "explain/diagnose/diagnose.h"
#include "measure/collect/channel_place.h"
#include "record/run_edit.h"
#include "record/run_reader.h"
#include "serve/run_filter.h"
#include "serve/run_order.h"
#include "watch/removal.h"
#include "watch/run_index.h"

namespace fullbore::cli {

namespace fs = std::filesystem;

namespace {

struct Flags {
  std::string directory = kDefaultRunsDirectory;
  ResultFile json{"--json", kJsonResult};
  bool force = false;
  std::vector<std::string> tags;
  std::string filter, sort = "begin", note;
  std::string run;  // that gets the note
  std::vector<std::string> pinned, unpinned;
  RemovalFlags removal;
};

constexpr int kMaxCommandColumns = 40;              // on a terminal
constexpr int64_t kJudgesForNs = 5 * kNsPerSecond;  // runs that nobody has looked at, the newest first

std::string StateOf(const record::RunSummary& run) {
  const record::Stage& last = run.stages.back();
  if (last.state == record::StageState::kRunning) return "unfinished";
  if (last.out_of_memory) return "out of memory";
  return last.exit_status ? fmt::format("exit {}", *last.exit_status) : "ended";
}

bool HasTags(const record::RunSummary& run, const std::vector<std::string>& wanted) {
  return std::all_of(wanted.begin(), wanted.end(), [&](const std::string& text) {
    const size_t equals = text.find('=');
    const auto tag = run.tags.find(text.substr(0, equals));
    return tag != run.tags.end() && (equals == std::string::npos || tag->second == text.substr(equals + 1));
  });
}

nlohmann::ordered_json ToJson(const watch::KnownRun& known) {
  const record::RunSummary& run = known.summary;
  nlohmann::ordered_json json = {{"schema", "fullbore.runs/1"},
                                 {"id", run.id},
                                 {"path", run.path},
                                 {"begin_unix_ns", run.wall_begin_ns},
                                 {"duration_ns", serve::DurationNs(known)},
                                 {"steps", run.steps},
                                 {"bytes", run.bytes},
                                 {"state", StateOf(run)},
                                 {"tags", run.tags},
                                 {"stages", nlohmann::ordered_json::array()}};
  for (const record::Stage& stage : run.stages) {
    json["stages"].push_back({{"name", stage.name}, {"command", stage.command}});
    if (stage.exit_status) json["stages"].back()["exit_status"] = *stage.exit_status;
  }
  if (!run.note.empty()) json["note"] = run.note;
  if (!known.judgement) return json;
  const watch::Judgement& judgement = *known.judgement;
  if (judgement.samples_per_s) json["samples_per_s"] = *judgement.samples_per_s;
  if (judgement.steps > 0) json["steps_per_s"] = judgement.steps_per_s;
  if (!judgement.finding.empty()) json["finding"] = judgement.finding;
  if (!judgement.verdict.empty()) json["verdict"] = judgement.verdict;
  return json;
}

std::string ThroughputOf(const watch::KnownRun& run) {
  if (!run.judgement || run.judgement->steps == 0) return "";
  const auto& samples = run.judgement->samples_per_s;
  return samples ? FormatCount(*samples) + " samples/s"
                 : FormatCount(run.judgement->steps_per_s) + " steps/s";
}

std::string VerdictOf(const watch::KnownRun& run) {
  if (!run.judgement) return "";
  const watch::Judgement& judgement = *run.judgement;
  return judgement.cause.empty() ? judgement.finding : judgement.finding + ": " + judgement.cause;
}

// Not for a file or a pipe: there, all of it is for grep.
std::string CommandOf(const watch::KnownRun& run) {
  const std::string command = Printable(serve::CommandOf(run), LocaleIsUtf8());
  return isatty(STDOUT_FILENO) != 0 ? Elide(command, kMaxCommandColumns, LocaleIsUtf8()) : command;
}

struct Column {
  const char* heading;
  bool right;  // aligned
  std::string (*cell)(const watch::KnownRun& run);
  int dropped;  // its place in the order of omission on a narrow terminal; 0: never omitted
  int columns = 0;
};

std::vector<Column> AllColumns() {
  using Run = watch::KnownRun;
  return {
      {"run", false, [](const Run& run) { return Printable(run.summary.id, LocaleIsUtf8()); }, 0},
      {"begun (UTC)", true, [](const Run& run) { return FormatUtc(run.summary.wall_begin_ns); },
       3},  // most ids say it
      {"lasted", true, [](const Run& run) { return FormatDuration(serve::DurationNs(run)); }, 5},
      {"steps", true, [](const Run& run) { return FormatCount(static_cast<double>(run.summary.steps)); }, 2},
      {"size", true, [](const Run& run) { return FormatBytes(static_cast<double>(run.summary.bytes)); }, 1},
      {"throughput", true, ThroughputOf, 6},
      {"verdict", false, VerdictOf, 7},
      {"end", false, [](const Run& run) { return StateOf(run.summary); }, 0},
      {"command", false, CommandOf, 4},
  };
}

using Runs = std::vector<serve::NamedRun>;

int WidthOf(const std::vector<Column>& columns) {
  int width = -2;
  for (const Column& column : columns) width += 2 + column.columns;
  return width;
}

// The columns that there is room for.
std::vector<Column> ColumnsFor(const Runs& runs, int room) {
  std::vector<Column> columns = AllColumns();
  for (Column& column : columns) {
    column.columns = Columns(column.heading);
    for (const auto& [name, run] : runs)
      column.columns = std::max(column.columns, Columns(column.cell(*run)));
  }
  for (int next = 1; WidthOf(columns) > room; ++next) {
    if (std::erase_if(columns, [&](const Column& column) { return column.dropped == next; }) == 0) break;
  }
  return columns;
}

std::string Line(const std::vector<Column>& columns, const std::function<std::string(const Column&)>& cell) {
  std::string line;
  for (const Column& column : columns) {
    const std::string text = cell(column);
    const std::string blanks(static_cast<size_t>(std::max(0, column.columns - Columns(text))), ' ');
    line += (line.empty() ? "" : "  ") + (column.right ? blanks + text : text + blanks);
  }
  return line.substr(0, line.find_last_not_of(' ') + 1);
}

void PrintList(const Runs& runs) {
  // Not for a file or a pipe: there, each run stays on one line, for grep.
  const int room = isatty(STDOUT_FILENO) != 0 ? OutputColumns() : std::numeric_limits<int>::max();
  const std::vector<Column> columns = ColumnsFor(runs, room);
  Print(stdout, "{}\n", Line(columns, [](const Column& column) { return std::string(column.heading); }));
  for (const auto& [name, run] : runs) {
    std::string line = Line(columns, [&known = *run](const Column& column) { return column.cell(known); });
    std::vector<std::string> more;
    const record::RunSummary& summary = run->summary;
    if (summary.stages.size() > 1) more.push_back(fmt::format("{} stages", summary.stages.size()));
    for (const auto& [key, value] : summary.tags)
      more.push_back(FormatPrintable(LocaleIsUtf8(), "{}={}", key, value));
    if (!summary.note.empty()) more.push_back(FormatPrintable(LocaleIsUtf8(), "# {}", summary.note));
    for (const std::string& each : more) {
      if (Columns(line) + 2 + Columns(each) > room) {
        Print(stdout, "{}\n", line);
        line = "   ";
      }
      line += "  " + each;
    }
    Print(stdout, "{}\n", line);
  }
  std::string left_out;
  for (const Column& column : AllColumns()) {
    const auto shown = [&](const Column& each) { return each.heading == std::string_view(column.heading); };
    if (std::none_of(columns.begin(), columns.end(), shown))
      left_out += (left_out.empty() ? "" : ", ") + std::string(column.heading);
  }
  if (!left_out.empty()) PrintWrapped("no room for: " + left_out, 0, 2);
}

// What a directory that somebody sent is not changed by: the list keeps its index where fullbore's runs go by default, or
// where `serve` has one.
bool KeepsIndex(const std::string& directory) {
  std::error_code error;
  return directory == kDefaultRunsDirectory || fs::exists(fs::path(directory) / watch::kRunIndexFile, error);
}

// Runs that nobody has looked at are judged, as long as there is time; the index keeps it for the next list.
void JudgeOthers(watch::RunIndex& index, bool keep) {
  const int64_t until_ns = MonotonicNs() + kJudgesForNs;
  std::vector<std::string> names;
  for (const auto& [name, run] : index.runs()) {
    if (!run.judgement && run.state != watch::RunState::kRunning) names.push_back(name);
  }
  std::ranges::sort(names, std::greater<>(),
                    [&](const std::string& name) { return index.runs().at(name).summary.wall_begin_ns; });
  for (const std::string& name : names) {
    if (MonotonicNs() >= until_ns) break;
    const auto recording = record::ReadRun(index.runs().at(name).summary.path);
    if (recording) index.Judge(name, watch::Judgement::Of(diagnose::Diagnose(*recording), *recording));
  }
  if (keep) index.Save();
}

// Says what is wrong with those that cannot be read.
void ComplainOfUnreadable(const std::string& directory, const watch::RunIndex& index) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory, error)) {
    if (entry.path().extension() != record::kRunSuffix || index.runs().contains(entry.path().stem().string()))
      continue;
    if (const auto run = record::ReadRunSummary(entry.path()); !run) Fail(run.error(), 0);
  }
}

int Write(const ResultFile& file, const Runs& runs) {
  nlohmann::ordered_json array = nlohmann::ordered_json::array();
  for (const auto& [name, run] : runs) array.push_back(ToJson(*run));
  if (auto written = WriteJson(file, array); !written) return Fail(written.error(), kExitFailure);
  return 0;
}

// Those that --tag and --filter leave.
Runs RunsOf(const watch::RunIndex& index, const Flags& flags, const serve::RunFilter& filter) {
  Runs runs;
  for (const auto& [name, run] : index.runs()) {
    if (HasTags(run.summary, flags.tags) && filter.Matches(name, run)) runs.emplace_back(name, &run);
  }
  return runs;
}

int Show(const Flags& flags, const serve::RunFilter& filter) {
  collect::RemoveLeftoverPlaces(flags.directory);
  watch::FinishRemovals(flags.directory);
  watch::RunIndex index(flags.directory);
  index.Update(WallNs());
  ComplainOfUnreadable(flags.directory, index);
  JudgeOthers(index, KeepsIndex(flags.directory));
  Runs runs = RunsOf(index, flags, filter);
  if (!serve::SortRuns(runs, flags.sort)) {
    return Fail({ErrorCode::kInvalidArgument, fmt::format("runs cannot be sorted by '{}'", flags.sort),
                 serve::kOrders},
                kExitUsage);
  }
  if (flags.json.wanted()) return Write(flags.json, runs);
  if (runs.empty()) {
    Print(stdout, "no runs are recorded in '{}'; record one: fullbore run -- python train.py\n",
          flags.directory);
    return 0;
  }
  PrintList(runs);
  return 0;
}

int Note(const Flags& flags) {
  const auto path = FindRun(flags.directory, flags.run);
  if (!path) return Fail(path.error(), StatusOf(path.error()));
  const std::string note = MaskUrls(MaskSecrets(std::string_view(flags.note)));
  if (auto noted = record::SetNote(*path, note); !noted) return Fail(noted.error(), kExitFailure);
  return 0;
}

int Pin(const Flags& flags, const std::string& name, bool pins) {
  const auto path = FindRun(flags.directory, name);
  if (!path) return Fail(path.error(), StatusOf(path.error()));
  auto run = record::ReadRunSummary(*path);
  if (!run) return Fail(run.error(), kExitFailure);
  run->tags.erase(watch::kPinTag);
  if (pins) run->tags[watch::kPinTag] = "yes";
  if (auto done = record::SetTags(*path, run->tags); !done) return Fail(done.error(), kExitFailure);
  return 0;
}

int PinAll(const Flags& flags) {
  int status = 0;
  for (const std::string& name : flags.pinned) status = std::max(status, Pin(flags, name, true));
  for (const std::string& name : flags.unpinned) status = std::max(status, Pin(flags, name, false));
  return status;
}

// What a limit says depends on each run. Those that are being recorded change with every look, so the last look is not
// the one that finds nothing changed, but the one that finds no further run.
void FindAll(watch::RunIndex& index) {
  for (size_t known = 0; index.Update(WallNs()) && index.runs().size() > known;) known = index.runs().size();
}

int Remove(const Flags& flags) {
  if (auto judged = JudgeRemoval(flags.removal); !judged) return Fail(judged.error(), kExitUsage);
  const auto filter = serve::RunFilter::Parse(flags.filter);
  if (!filter) return Fail(filter.error(), kExitUsage);
  watch::FinishRemovals(flags.directory);
  watch::RunIndex index(flags.directory);
  FindAll(index);
  return RemoveRuns(flags.removal, flags.directory, RunsOf(index, flags, *filter));
}

int List(Flags& flags, bool notes) {
  if (notes) return Note(flags);
  if (!flags.pinned.empty() || !flags.unpinned.empty()) return PinAll(flags);
  if (flags.removal.wanted()) return Remove(flags);
  std::error_code error;
  InputFiles inputs;
  for (const auto& entry : fs::directory_iterator(flags.directory, error)) {
    if (entry.path().extension() == record::kRunSuffix) inputs.Add(entry.path());
  }
  if (auto judged = JudgeResults({&flags.json}, inputs, flags.force, flags.directory); !judged)
    return Fail(judged.error(), kExitUsage);
  const auto filter = serve::RunFilter::Parse(flags.filter);
  if (!filter) return Fail(filter.error(), kExitUsage);
  return Show(flags, *filter);
}

Handler Define(CLI::App& app, const Invocation&) {
  auto flags = std::make_shared<Flags>();
  app.add_option("-o,--output", flags->directory, "Where runs are kept")
      ->type_name("DIR")
      ->default_str(kDefaultRunsDirectory);
  app.add_option("--tag", flags->tags, "Only runs with this tag: key or key=value")->type_name("K[=V]");
  app.add_option("--filter", flags->filter,
                 "Only runs that match, as on the page of `serve`: 'finding:input-bound tag:lr=3e-4 resnet'")
      ->type_name("WORDS");
  app.add_option("--sort", flags->sort, std::string("By ") + serve::kOrders)->capture_default_str();
  auto* note = app.add_option("--note", flags->note, "Write this note about RUN instead; '' removes it")
                   ->type_name("TEXT");
  auto* run = app.add_option("RUN", flags->run, "The run that the note is about");
  run->needs(note);
  note->needs(run);
  app.add_option("--pin", flags->pinned, "Pin these runs: nothing deletes them")->type_name("RUN");
  app.add_option("--unpin", flags->unpinned, "Let these runs be deleted again")->type_name("RUN");
  AddRemovalFlags(app, flags->removal);
  AddResult(app, flags->json, "Write the list to this file");
  AddForce(app, flags->force);
  return [flags, note] { return List(*flags, note->count() > 0); };
}

}  // namespace

const Subcommand kRuns = {"runs", "List the recorded runs",
                          "fullbore runs --tag team=vision\n"
                          "  fullbore runs --filter 'finding:input-bound' --sort -waste\n"
                          "  fullbore runs --note 'with the new loader' last\n"
                          "  fullbore runs --prune --older-than 30d --at-most 10GB",
                          Define};

}  // namespace fullbore::cli
