#include "watch/run_index.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/fd.h"
#include "base/guarded_file.h"
#include "base/text.h"
#include "base/trusted_path.h"
#include "explain/diagnose/diagnose.h"

namespace fullbore::watch {

namespace {

using record::kRunSuffix;
using Json = nlohmann::json;

constexpr off_t kMostIndexBytes = 64 << 20;  // of 50,000 runs; a longer one is not ours
constexpr char kFormat[] = "fullbore-index/1";
// Thousands of runs that nobody has indexed must not keep whoever waits for an answer waiting.
constexpr int64_t kUpdateNs = kNsPerSecond / 2;
constexpr std::string_view kLogSuffix = "-wal";

int64_t ChangedNs(const struct stat& info) {
  return int64_t{info.st_mtim.tv_sec} * kNsPerSecond + info.st_mtim.tv_nsec;
}

struct Closer {
  void operator()(DIR* directory) const { closedir(directory); }
};

// Of a file in the open directory `at`, or by its path; `has_log`: a log may be beside it.
std::optional<FileStamp> Stamp(int at, const std::string& file, bool has_log) {
  struct stat info {};
  if (fstatat(at, file.c_str(), &info, 0) != 0 || !S_ISREG(info.st_mode)) return std::nullopt;
  FileStamp stamp{info.st_ino, info.st_size, ChangedNs(info), 0, 0};
  const std::string log = file + std::string(kLogSuffix);
  if (has_log && fstatat(at, log.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0) {
    stamp.log_bytes = info.st_size;
    stamp.log_changed_ns = ChangedNs(info);
  }
  return stamp;
}

std::map<std::string, FileStamp> StampsIn(DIR* directory, bool with_folders);

// Of a run on several machines: of all their files.
std::optional<FileStamp> StampOfFolder(int at, const std::string& folder) {
  UniqueFd opened(openat(at, folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  struct stat info {};
  if (opened.get() < 0 || fstat(opened.get(), &info) != 0) return std::nullopt;
  const std::unique_ptr<DIR, Closer> open(fdopendir(opened.get()));
  if (!open) return std::nullopt;
  (void)opened.release();
  FileStamp all{info.st_ino, 0, ChangedNs(info), 0, 0};
  for (const auto& [node, stamp] : StampsIn(open.get(), false)) {
    all.bytes += stamp.bytes;
    all.changed_ns = std::max(all.changed_ns, stamp.changed_ns);
    all.log_bytes += stamp.log_bytes;
    all.log_changed_ns = std::max(all.log_changed_ns, stamp.log_changed_ns);
  }
  return all;
}

std::optional<FileStamp> StampOfRun(const std::string& path) {
  const auto stamp = Stamp(AT_FDCWD, path, /*has_log=*/true);
  return stamp ? stamp : StampOfFolder(AT_FDCWD, path);
}

// The runs of a directory, without reading any.
std::map<std::string, FileStamp> StampsOf(const std::string& directory) {
  const std::unique_ptr<DIR, Closer> open(opendir(directory.c_str()));
  return open ? StampsIn(open.get(), true) : std::map<std::string, FileStamp>();
}

std::map<std::string, FileStamp> StampsIn(DIR* directory, bool with_folders) {
  std::map<std::string, FileStamp> stamps;
  std::set<std::string> logs;
  while (const dirent* entry = readdir(directory)) {
    const std::string_view name = entry->d_name;
    if (name.ends_with(kRunSuffix))
      stamps.try_emplace(std::string(name.substr(0, name.size() - kRunSuffix.size())));
    else if (name.ends_with(kLogSuffix))
      logs.emplace(name);
  }
  const int at = dirfd(directory);
  for (auto each = stamps.begin(); each != stamps.end();) {
    const std::string file = each->first + std::string(kRunSuffix);
    auto stamp = Stamp(at, file, logs.contains(file + std::string(kLogSuffix)));
    if (!stamp && with_folders) stamp = StampOfFolder(at, file);
    if (!stamp) {
      each = stamps.erase(each);
      continue;
    }
    each++->second = *stamp;
  }
  return stamps;
}

bool IsSilent(const FileStamp& stamp, int64_t wall_ns) {
  return wall_ns - std::max(stamp.changed_ns, stamp.log_changed_ns) >= kSilentNs;
}

RunState StateOf(const record::RunSummary& run, const FileStamp& stamp, int64_t wall_ns) {
  if (run.stages.back().state == record::StageState::kEnded) return RunState::kEnded;
  return IsSilent(stamp, wall_ns) ? RunState::kCutOff : RunState::kRunning;
}

// Whether the recorder has written since. Others write into a run, too: alerts, tags, a note.
bool HasMoved(const record::RunSummary& before, const record::RunSummary& now) {
  return now.stages.size() != before.stages.size() ||
         now.stages.back().end_ns != before.stages.back().end_ns ||
         now.stages.back().state != before.stages.back().state;
}

Json ToJson(const Judgement& judgement) {
  Json json = {{"finding", judgement.finding},    {"cause", judgement.cause},
               {"severity", judgement.severity},  {"verdict", judgement.verdict},
               {"change", judgement.change},      {"speedup", judgement.speedup},
               {"steps", judgement.steps},        {"steps_per_s", judgement.steps_per_s},
               {"shares", judgement.shares},      {"mean_step_ns", judgement.mean_step_ns},
               {"sparkline", judgement.sparkline}};
  if (judgement.samples_per_s) json["samples_per_s"] = *judgement.samples_per_s;
  return json;
}

Judgement JudgementFrom(const Json& json) {
  Judgement judgement;
  json.at("finding").get_to(judgement.finding);
  json.at("cause").get_to(judgement.cause);
  json.at("severity").get_to(judgement.severity);
  json.at("verdict").get_to(judgement.verdict);
  json.at("change").get_to(judgement.change);
  json.at("speedup").get_to(judgement.speedup);
  json.at("steps").get_to(judgement.steps);
  json.at("steps_per_s").get_to(judgement.steps_per_s);
  json.at("mean_step_ns").get_to(judgement.mean_step_ns);
  json.at("shares").get_to(judgement.shares);
  json.at("sparkline").get_to(judgement.sparkline);
  if (json.contains("samples_per_s")) judgement.samples_per_s = json["samples_per_s"].get<double>();
  return judgement;
}

Json ToJson(const KnownRun& run) {
  const FileStamp& stamp = run.stamp;
  Json json = {{"name", run.name},
               {"id", run.summary.id},
               {"tags", run.summary.tags},
               {"note", run.summary.note},
               {"begin_unix_ns", run.summary.wall_begin_ns},
               {"steps", run.summary.steps},
               {"bytes", run.summary.bytes},
               {"stamp", {stamp.inode, stamp.bytes, stamp.changed_ns, stamp.log_bytes, stamp.log_changed_ns}},
               {"stages", Json::array()}};
  for (const record::Stage& stage : run.summary.stages) {
    json["stages"].push_back({{"name", stage.name},
                              {"command", stage.command},
                              {"directory", stage.directory},
                              {"begin_ns", stage.begin_ns},
                              {"end_ns", stage.end_ns},
                              {"ended", stage.state == record::StageState::kEnded},
                              {"out_of_memory", stage.out_of_memory}});
    if (stage.exit_status) json["stages"].back()["exit_status"] = *stage.exit_status;
  }
  if (run.judgement) json["judgement"] = ToJson(*run.judgement);
  return json;
}

record::Stage StageFrom(const Json& json) {
  record::Stage stage;
  json.at("name").get_to(stage.name);
  json.at("command").get_to(stage.command);
  json.at("directory").get_to(stage.directory);
  json.at("begin_ns").get_to(stage.begin_ns);
  json.at("end_ns").get_to(stage.end_ns);
  stage.state = json.at("ended").get<bool>() ? record::StageState::kEnded : record::StageState::kRunning;
  json.at("out_of_memory").get_to(stage.out_of_memory);
  if (json.contains("exit_status")) stage.exit_status = json["exit_status"].get<int>();
  return stage;
}

// Throws nlohmann's exceptions on anything that ToJson does not write.
KnownRun RunFrom(const Json& json, const std::string& directory) {
  KnownRun run;
  json.at("name").get_to(run.name);
  json.at("id").get_to(run.summary.id);
  run.summary.path = directory + "/" + run.name + std::string(kRunSuffix);
  json.at("tags").get_to(run.summary.tags);
  json.at("note").get_to(run.summary.note);
  json.at("begin_unix_ns").get_to(run.summary.wall_begin_ns);
  json.at("steps").get_to(run.summary.steps);
  json.at("bytes").get_to(run.summary.bytes);
  const auto stamp = json.at("stamp").get<std::array<int64_t, 5>>();
  run.stamp = {static_cast<uint64_t>(stamp[0]), stamp[1], stamp[2], stamp[3], stamp[4]};
  for (const Json& stage : json.at("stages")) run.summary.stages.push_back(StageFrom(stage));
  if (run.summary.stages.empty()) throw Json::out_of_range::create(401, "a run without stages", &json);
  if (json.contains("judgement")) run.judgement = JudgementFrom(json["judgement"]);
  const bool ended = run.summary.stages.back().state == record::StageState::kEnded;
  run.state = ended ? RunState::kEnded : RunState::kCutOff;  // those that are running are not written
  return run;
}

// Steps per second of the lead rank in equal parts of the time it trained.
std::vector<double> SparklineOf(const record::Stage& stage) {
  if (stage.ranks.empty() || stage.ranks.front().windows.empty()) return {};
  const std::vector<record::StepWindow>& windows = stage.ranks.front().windows;
  const int64_t begin_ns = windows.front().begin_ns;
  const int64_t span_ns = std::max<int64_t>(windows.back().end_ns - begin_ns, 1);
  const size_t parts = std::min(windows.size(), Judgement::kSparks);
  std::vector<double> steps(parts);
  for (const record::StepWindow& window : windows) {
    const int64_t middle_ns = window.begin_ns + (window.end_ns - window.begin_ns) / 2;
    const auto at = static_cast<double>(middle_ns - begin_ns);
    const auto part = static_cast<size_t>(at / static_cast<double>(span_ns) * static_cast<double>(parts));
    steps[std::min(part, parts - 1)] += static_cast<double>(window.steps);
  }
  const double part_s = static_cast<double>(span_ns) / 1e9 / static_cast<double>(parts);
  // Three digits: nobody reads more from a line of 40 points.
  for (double& each : steps) each = std::round(each / part_s * 1000) / 1000;
  return steps;
}

std::string_view NameOf(diagnose::Severity severity) {
  constexpr std::string_view kNames[] = {"info", "warning", "critical"};
  return kNames[static_cast<size_t>(severity)];
}

}  // namespace

bool IsSilent(const std::string& run_file, int64_t wall_ns) {
  const auto stamp = StampOfRun(run_file);
  return stamp && IsSilent(*stamp, wall_ns);
}

Judgement Judgement::Of(const diagnose::Diagnosis& diagnosis, const record::Recording& recording) {
  Judgement judgement;
  if (!diagnosis.findings.empty()) {
    const diagnose::Finding& first = diagnosis.findings.front();
    judgement.finding = first.id;
    judgement.cause = first.cause;
    judgement.severity = NameOf(first.severity);
    judgement.verdict = first.title;
    judgement.change = first.change;
    judgement.speedup = first.speedup.expected;
  } else {
    judgement.verdict = diagnosis.fitness.Refusal();
  }
  judgement.steps = diagnosis.steps;
  judgement.steps_per_s = diagnosis.steps_per_s;
  judgement.mean_step_ns = diagnosis.mean_step_ns;
  judgement.samples_per_s = diagnosis.samples_per_s;
  judgement.shares = diagnosis.shares;
  if (const record::Stage* stage = diagnose::JudgedStage(recording, diagnosis.stage))
    judgement.sparkline = SparklineOf(*stage);
  return judgement;
}

RunIndex::RunIndex(std::string directory) : directory_(std::move(directory)) { Load(); }

void RunIndex::Load() {
  const auto file = OpenRegularFile(directory_ + "/" + kRunIndexFile);
  struct stat status {};
  if (file && fstat(file->get(), &status) == 0 && status.st_size > kMostIndexBytes) return;
  const auto text =
      file ? ReadToEnd(file->get(), directory_ + "/" + kRunIndexFile) : Result<std::string>(file.error());
  if (!text) return;
  bool first = true;
  for (const std::string_view line : Split(*text, '\n')) {
    const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (std::exchange(first, false)) {
      if (!json.is_object() || json.value("format", "") != kFormat) return;
      continue;
    }
    try {
      KnownRun run = RunFrom(json, directory_);
      runs_[run.name] = std::move(run);
    } catch (const Json::exception&) {  // cut off, or not ours: that run is read again
    }
  }
}

bool RunIndex::Look(const std::string& name, const FileStamp& stamp, int64_t wall_ns) {
  if (const auto bad = unreadable_.find(name); bad != unreadable_.end() && bad->second == stamp) return false;
  const auto known = runs_.find(name);
  if (known != runs_.end() && known->second.stamp == stamp) {
    if (known->second.state != RunState::kRunning) return false;
    const RunState state = StateOf(known->second.summary, stamp, wall_ns);
    return std::exchange(known->second.state, state) != state;
  }
  // A live run changes with every look; whoever follows it gives its summary.
  if (known != runs_.end() && known->second.state == RunState::kRunning && stamp.log_bytes > 0) {
    known->second.stamp = stamp;
    return true;
  }
  auto summary = record::ReadRunSummary(directory_ + "/" + name + std::string(kRunSuffix));
  if (!summary) {
    unreadable_[name] = stamp;
    return runs_.erase(name) > 0;
  }
  unreadable_.erase(name);
  KnownRun run{name, std::move(*summary), RunState::kEnded, std::nullopt, stamp};
  run.state = StateOf(run.summary, stamp, wall_ns);
  if (known != runs_.end() && known->second.state != RunState::kRunning &&
      !HasMoved(known->second.summary, run.summary)) {
    run.state = known->second.state;
    run.judgement = std::move(known->second.judgement);
  }
  unsaved_ = unsaved_ || run.state != RunState::kRunning;
  runs_[name] = std::move(run);
  return true;
}

bool RunIndex::Update(int64_t wall_ns) {
  const std::map<std::string, FileStamp> stamps = StampsOf(directory_);
  const size_t gone = std::erase_if(runs_, [&](const auto& each) { return !stamps.contains(each.first); });
  std::erase_if(unreadable_, [&](const auto& each) { return !stamps.contains(each.first); });
  unsaved_ = unsaved_ || gone > 0;
  bool changed = gone > 0;
  // Newest first, as far as the time goes: the next update goes on.
  const int64_t until_ns = MonotonicNs() + kUpdateNs;
  for (auto each = stamps.rbegin(); each != stamps.rend() && MonotonicNs() < until_ns; ++each)
    changed = Look(each->first, each->second, wall_ns) || changed;
  return changed;
}

void RunIndex::Judge(const std::string& name, Judgement judgement) {
  const auto run = runs_.find(name);
  if (run == runs_.end()) return;
  run->second.judgement = std::move(judgement);
  unsaved_ = unsaved_ || run->second.state != RunState::kRunning;
}

void RunIndex::PutSummary(const std::string& name, record::RunSummary summary) {
  const auto run = runs_.find(name);
  if (run != runs_.end()) run->second.summary = std::move(summary);
}

void RunIndex::Reread(const std::string& name) {
  const auto run = runs_.find(name);
  if (run == runs_.end()) return;
  const auto summary = record::ReadRunSummary(run->second.summary.path);
  if (!summary) return;
  run->second.summary.tags = summary->tags;
  run->second.summary.note = summary->note;
  if (const auto stamp = StampOfRun(run->second.summary.path)) run->second.stamp = *stamp;
  unsaved_ = unsaved_ || run->second.state != RunState::kRunning;
}

void RunIndex::Save() {
  if (!std::exchange(unsaved_, false)) return;
  if (!TrustedPath(directory_, Others::kChosen)) return;  // somebody else may say where it leads
  std::string text = Json{{"format", kFormat}}.dump() + "\n";
  for (const auto& [name, run] : runs_) {
    if (run.state == RunState::kRunning) continue;
    text += ToJson(run).dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  }
  (void)WriteFileAtOnce(directory_ + "/" + kRunIndexFile, text, kPrivateFile);
}

}  // namespace fullbore::watch
