#include "record/run_reader.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <numeric>
#include <optional>

#include "base/text.h"
#include "base/time_limit.h"
#include "record/columns.h"
#include "record/database.h"
#include "record/json_text.h"
#include "record/limits.h"
#include "record/loader_stage.h"
#include "record/plausible.h"
#include "record/run_of_nodes.h"
#include "record/run_schema.h"
#include "record/snapshot.h"
#include "record/step_codec.h"

namespace fullbore::record {

namespace {

double Dequantise(int64_t stored, double resolution) {
  if (resolution > 0) return static_cast<double>(stored) * resolution;
  double value = 0;
  std::memcpy(&value, &stored, sizeof value);
  return value;
}

// Reads one table after another; a table that breaks off keeps its first rows and is named in `damaged`. Rows
// come in the order of the primary key if the file keeps to it: whoever needs an order must sort.
class Reader {
 public:
  explicit Reader(Database database)
      : database_(std::move(database)), values_left_(kFreeValues + kValuesPerByte * database_.file_bytes()) {}

  // Calls row(statement) for each row of `sql`, which selects from `table`.
  template <typename Row>
  void ForEach(const std::string& table, const std::string& sql, Row row) {
    if (database_.ColumnsOf(table) == nullptr) return Damaged(table);
    auto statement = database_.Prepare(sql);
    if (!statement) return Damaged(table);
    while (statement->Next()) {
      TimeLimit::Check();
      row(*statement);
    }
    if (!statement->status().ok()) Damaged(table);
  }

  // Files of older recorders lack the newer tables.
  bool Has(const std::string& table) { return database_.ColumnsOf(table) != nullptr; }

  void Damaged(const std::string& table) {
    if (std::find(damaged_.begin(), damaged_.end(), table) == damaged_.end()) damaged_.push_back(table);
  }
  const std::vector<std::string>& damaged() const { return damaged_; }

  // The value in the row if it is possible, else the nearest possible one.
  int64_t Within(const std::string& table, int64_t value, int64_t least, int64_t most) {
    if (value < least || value > most) Damaged(table);
    return std::clamp(value, least, most);
  }
  int64_t Moment(const std::string& table, int64_t ns) { return Within(table, ns, -kMaxNs, kMaxNs); }

  // False, and damage, once the blocks have held more than a file of this size can.
  bool MayHold(const std::string& table, size_t values) {
    if (static_cast<int64_t>(values) > values_left_) return Damaged(table), false;
    values_left_ -= static_cast<int64_t>(values);
    return true;
  }

 private:
  Database database_;
  int64_t values_left_;
  std::vector<std::string> damaged_;
};

template <typename T, typename Key>
void SortBy(std::vector<T>& rows, Key key) {
  std::stable_sort(rows.begin(), rows.end(), [&](const T& a, const T& b) { return key(a) < key(b); });
}

Stage* StageOf(std::vector<Stage>& stages, int64_t id) {
  for (Stage& stage : stages) {
    if (stage.id == id) return &stage;
  }
  return nullptr;
}

RankInfo* RankOf(std::vector<Stage>& stages, int64_t stage_id, int64_t rank) {
  Stage* stage = StageOf(stages, stage_id);
  if (!stage || rank < 0 || rank > kMaxRankNumber) return nullptr;
  for (RankInfo& info : stage->ranks) {
    if (info.rank == rank) return &info;
  }
  if (stage->ranks.size() >= kMaxRanks) return nullptr;
  stage->ranks.emplace_back().rank = static_cast<int>(rank);  // its row was lost, its steps were not
  return &stage->ranks.back();
}

template <typename Into>
void TakeBlob(Reader& reader, const char* table, Result<Into> decoded, Into& into) {
  if (decoded.ok())
    into = std::move(*decoded);
  else
    reader.Damaged(table);
}

std::map<std::string, std::string> ReadMap(Reader& reader, const std::string& table) {
  std::map<std::string, std::string> map;
  reader.ForEach(table, "SELECT key, value FROM " + table,
                 [&](Statement& row) { map[row.Text(0)] = row.Text(1); });
  return map;
}

std::vector<Stage> ReadStages(Reader& reader) {
  std::vector<Stage> stages;
  reader.ForEach(
      "stage",
      "SELECT id, name, command, directory, begin_ns, end_ns, state, exit_status, out_of_memory FROM stage",
      [&](Statement& row) {
        if (stages.size() >= kMaxStages) return reader.Damaged("stage");
        Stage& stage = stages.emplace_back();
        stage.id = row.Int(0);
        stage.name = row.Text(1);
        const auto words = ParseJson(row.Text(2));
        if (words.is_array()) {
          for (const auto& word : words) {
            if (word.is_string()) stage.command.push_back(word.get<std::string>());
          }
        }
        stage.directory = row.Text(3);
        stage.begin_ns = reader.Moment("stage", row.Int(4));
        stage.end_ns = std::max(stage.begin_ns, reader.Moment("stage", row.Int(5)));
        stage.state = row.Int(6) == 0 ? StageState::kRunning : StageState::kEnded;
        if (!row.IsNull(7)) stage.exit_status = static_cast<int>(reader.Within("stage", row.Int(7), -1, 255));
        stage.out_of_memory = row.Int(8) != 0;
      });
  SortBy(stages, [](const Stage& stage) { return stage.id; });
  return stages;
}

void ReadRanks(Reader& reader, std::vector<Stage>& stages) {
  reader.ForEach(
      "rank",
      "SELECT stage, rank, pid, hostname, device, samples_known, device_activity, totals, facts, hot_lines "
      "FROM rank",
      [&](Statement& row) {
        RankInfo* info = RankOf(stages, row.Int(0), row.Int(1));
        if (!info) return reader.Damaged("rank");
        info->pid = row.Int(2);
        info->hostname = row.Text(3);
        info->device = row.Text(4);
        info->samples_known = row.Int(5) != 0;
        info->device_activity = row.Int(6) != 0;
        TotalsFromJson(row.Text(7), *info);
        info->facts = MapFromJson(row.Text(8));
        if (LeaveOutImplausible(info->facts)) reader.Damaged("rank");
        info->hot_lines = HotLinesFromJson(row.Text(9));
      });
  reader.ForEach("loader", "SELECT stage, rank, about, batch_fetch, slowest_sample, wait, id FROM loader",
                 [&](Statement& row) {
                   RankInfo* info = RankOf(stages, row.Int(0), row.Int(1));
                   if (!info || info->loaders.size() >= kMaxLoaders) return reader.Damaged("loader");
                   Loader loader = LoaderFromJson(row.Text(2));
                   loader.id = static_cast<int>(reader.Within("loader", row.Int(6), 0, 1 << 30));
                   TakeBlob(reader, "loader", Sketch::Decode(row.Text(3)), loader.batch_fetch_ns);
                   TakeBlob(reader, "loader", Sketch::Decode(row.Text(4)), loader.slowest_sample_ns);
                   TakeBlob(reader, "loader", Sketch::Decode(row.Text(5)), loader.wait_ns);
                   info->loaders.push_back(std::move(loader));
                 });
  for (Stage& stage : stages) {
    SortBy(stage.ranks, [](const RankInfo& rank) { return rank.rank; });
    for (RankInfo& rank : stage.ranks) SortBy(rank.loaders, [](const Loader& loader) { return loader.id; });
  }
}

int64_t WallOf(const Step& step) { return step.wall_ns; }
int64_t WallOf(const StepWindow& window) {
  return std::accumulate(window.share_ns.begin(), window.share_ns.end(), int64_t{0});
}

// Rows of blocks, as long as their total duration remains possible.
template <typename Row>
void TakeRows(Reader& reader, const char* table, const std::vector<Row>& rows, int64_t* all_ns,
              std::vector<Row>& into) {
  if (!reader.MayHold(table, rows.size() * (sizeof(Row) / sizeof(int64_t)))) return;
  for (const Row& row : rows) {
    if (WallOf(row) > kMaxNs - *all_ns) return reader.Damaged(table);
    *all_ns += WallOf(row);
    into.push_back(row);
  }
}

using OfRank = std::pair<int64_t, int64_t>;  // stage and rank

// Where in a table of blocks the last block of each rank begins that may hold what ended after `since_ns`: a block
// knows when it begins, and ends where the next one does.
std::map<OfRank, int64_t> FirstBlocks(Reader& reader, const std::string& table, const std::string& begin,
                                      int64_t since_ns) {
  std::map<OfRank, int64_t> first;
  reader.ForEach(table, "SELECT stage, rank, " + begin + " FROM " + table, [&](Statement& row) {
    if (row.Int(2) > since_ns) return;
    const auto [known, is_new] = first.try_emplace({row.Int(0), row.Int(1)}, row.Int(2));
    if (!is_new) known->second = std::max(known->second, row.Int(2));
  });
  return first;
}

// The rows of all blocks of a table that ended after `since_ns`, into ranks' `rows`.
template <typename Row>
void ReadBlocks(Reader& reader, std::vector<Stage>& stages, const char* table, const std::string& begin,
                int64_t since_ns, Result<std::vector<Row>> (*decode)(std::string_view),
                std::vector<Row> RankInfo::*rows) {
  const auto first = FirstBlocks(reader, table, begin, since_ns);
  std::map<OfRank, int64_t> all_ns;
  reader.ForEach(table, "SELECT stage, rank, data, " + begin + " FROM " + std::string(table),
                 [&](Statement& row) {
                   const OfRank of = {row.Int(0), row.Int(1)};
                   if (const auto from = first.find(of); from != first.end() && row.Int(3) < from->second)
                     return;
                   std::vector<Row> block;
                   TakeBlob(reader, table, decode(row.TextView(2)), block);
                   RankInfo* info = RankOf(stages, of.first, of.second);
                   if (!info) return reader.Damaged(table);
                   std::erase_if(block, [&](const Row& each) { return each.end_ns <= since_ns; });
                   TakeRows(reader, table, block, &all_ns[of], info->*rows);
                 });
}

void ReadSteps(Reader& reader, std::vector<Stage>& stages, int64_t since_ns) {
  ReadBlocks(reader, stages, "step", "first_end_ns", since_ns, DecodeSteps, &RankInfo::steps);
  ReadBlocks(reader, stages, "step_window", "begin_ns", since_ns, DecodeWindows, &RankInfo::windows);
  for (Stage& stage : stages) {
    for (RankInfo& info : stage.ranks) {
      SortBy(info.steps, [](const Step& step) { return step.index; });
      SortBy(info.windows, [](const StepWindow& window) { return window.begin_ns; });
    }
  }
}

// Column 0 holds the times, column 1 the ids of the series, then one column per series: see RunWriter.
void AppendBlock(Reader& reader, const std::vector<Column>& columns, std::map<int64_t, Series>& series) {
  if (columns.size() < 2) return;
  const auto& times = columns[0].values;
  for (const int64_t t_ns : times) {
    if (t_ns < -kMaxNs || t_ns > kMaxNs) return reader.Damaged("readings");
  }
  if (!reader.MayHold("readings", columns.size() * times.size())) return;
  for (size_t c = 0; c < columns[1].values.size() && c + 2 < columns.size(); ++c) {
    const Column& column = columns[c + 2];
    const auto into = series.find(columns[1].values[c]);
    if (into == series.end() || column.values.size() != times.size()) continue;
    for (size_t i = 0; i < times.size(); ++i) {
      if (!column.present.empty() && !column.present[i]) continue;
      const double value = Dequantise(column.values[i], into->second.key.resolution);
      if (!(std::abs(value) <= kMaxReading)) return reader.Damaged("readings");  // catches NaN, too
      into->second.readings.push_back({times[i], value});
    }
  }
}

// Older recordings have one name, distinguished by its stage, for what are now three metrics. For stages
// after which nothing waits that series is always 0, and it keeps its name.
SeriesKey UnderTodaysName(SeriesKey key) {
  const auto stage = key.labels.find("stage");
  if (key.name != "loader_blocked" || stage == key.labels.end()) return key;
  const auto known = LoaderStageNamed(stage->second);
  const auto metric = known ? BlockedIn(*known) : std::nullopt;
  if (!metric) return key;
  key.name = Name(*metric);
  key.labels.erase(stage);
  return key;
}

void ReadSeries(Reader& reader, std::vector<Stage>& stages, int64_t since_ns) {
  std::map<int64_t, Series> series;
  std::map<int64_t, int64_t> stage_of;
  reader.ForEach("series", "SELECT id, stage, name, unit, labels, resolution FROM series",
                 [&](Statement& row) {
                   stage_of[row.Int(0)] = row.Int(1);
                   series[row.Int(0)].key =
                       UnderTodaysName({row.Text(2), row.Text(3), MapFromJson(row.Text(4)), row.Double(5)});
                 });
  reader.ForEach("readings", "SELECT data, end_ns FROM readings", [&](Statement& row) {
    if (row.Int(1) <= since_ns) return;
    std::vector<Column> columns;
    TakeBlob(reader, "readings", DecodeColumns(row.TextView(0)), columns);
    AppendBlock(reader, columns, series);
  });
  for (auto& [id, one] : series) {
    const auto is_early = [&](const Reading& reading) { return reading.t_ns <= since_ns; };
    if (std::erase_if(one.readings, is_early) > 0)
      one.readings.shrink_to_fit();  // whoever follows a run keeps them
    SortBy(one.readings, [](const Reading& reading) { return reading.t_ns; });
    if (Stage* stage = StageOf(stages, stage_of[id])) stage->series.push_back(std::move(one));
  }
}

// The newest of each rank: a day's windows together would take the memory of a workstation.
void ReadDeviceWindows(Reader& reader, std::vector<Stage>& stages) {
  if (!reader.Has("device_window")) return;
  reader.ForEach("device_window", "SELECT stage, rank, first_step, steps, trace FROM device_window",
                 [&](Statement& row) {
                   Stage* stage = StageOf(stages, row.Int(0));
                   if (!stage || RankOf(stages, row.Int(0), row.Int(1)) == nullptr)
                     return reader.Damaged("device_window");
                   const auto rank = static_cast<int>(row.Int(1));
                   const int64_t first_step = reader.Within("device_window", row.Int(2), 0, kMaxCount);
                   const int64_t steps = reader.Within("device_window", row.Int(3), 0, kMaxCount);
                   auto& windows = stage->device_windows;
                   auto known = std::ranges::find(windows, rank, &DeviceWindow::rank);
                   if (known == windows.end())
                     known = windows.insert(windows.end(), DeviceWindow{rank, -1, 0, ""});
                   if (first_step > known->first_step) *known = {rank, first_step, steps, row.Text(4)};
                 });
  for (Stage& stage : stages)
    SortBy(stage.device_windows, [](const DeviceWindow& window) { return window.rank; });
}

void ReadProcessesAndMessages(Reader& reader, std::vector<Stage>& stages) {
  reader.ForEach(
      "process", "SELECT stage, pid, parent_pid, role, rank, command, begin_ns, end_ns FROM process",
      [&](Statement& row) {
        Stage* stage = StageOf(stages, row.Int(0));
        if (!stage) return;
        stage->processes.push_back(
            {row.Int(1), row.Int(2), row.Text(3),
             static_cast<int>(reader.Within("process", row.Int(4), -1, kMaxRankNumber)), row.Text(5),
             reader.Moment("process", row.Int(6)), reader.Moment("process", row.Int(7))});
      });
  reader.ForEach("message", "SELECT stage, t_ns, severity, source, text FROM message", [&](Statement& row) {
    Stage* stage = StageOf(stages, row.Int(0));
    if (!stage) return;
    const auto severity = static_cast<Severity>(std::clamp<int64_t>(row.Int(2), 0, 2));
    std::optional<int64_t> t_ns;
    if (!row.IsNull(1)) t_ns = reader.Moment("message", row.Int(1));
    stage->messages.push_back({t_ns, severity, row.Text(3), row.Text(4)});
  });
  for (Stage& stage : stages) {
    SortBy(stage.processes, [](const Process& process) { return process.begin_ns; });
    SortBy(stage.messages, [](const Message& message) { return message.t_ns; });
  }
}

Error NotARunFile(const std::string& path, const std::string& why) {
  return {ErrorCode::kCorrupt, "cannot read '" + path + "' as a fullbore run file: " + why,
          "run files end in .fbr; `fullbore runs` lists them"};
}

struct Opened {
  Reader reader;
  std::map<std::string, std::string> meta;
  std::vector<Stage> stages;
};

Result<Opened> OpenRun(const std::string& path) {
  auto database = Database::OpenForReading(path);
  if (!database) {
    if (database.error().code != ErrorCode::kCorrupt) return database.error();
    return NotARunFile(path, database.error().text);
  }
  Opened opened{Reader(std::move(*database)), {}, {}};
  opened.meta = ReadMap(opened.reader, "meta");
  const std::string format = opened.meta.count("format") ? opened.meta["format"] : "";
  if (format.empty())
    return NotARunFile(path, "it has no format mark (empty, cut off at the start, or foreign)");
  if (format != kRunFormat) {
    return Error{ErrorCode::kUnsupported,
                 "'" + path + "' has the format '" + format + "'; this fullbore reads '" + kRunFormat + "'",
                 "read it with the version of fullbore that wrote it, or a newer one"};
  }
  opened.stages = ReadStages(opened.reader);
  if (opened.stages.empty()) return NotARunFile(path, "its table of stages is missing");
  return opened;
}

int64_t WallOffset(const std::map<std::string, std::string>& meta) {
  const auto at = meta.find("wall_offset_ns");
  if (at == meta.end()) return 0;
  return std::clamp(ParseInt(at->second).value_or(0), -kMaxWallOffsetNs, kMaxWallOffsetNs);
}

// Starts over if a recorder begins to change the file while it is being read.
template <typename Read>
auto ReadUnchanged(const std::string& path, Read read) {
  constexpr int kAttempts = 3;
  for (int attempt = 1;; ++attempt) {
    const FileState before = FileState::Of(path);
    auto result = read(path);
    if (attempt == kAttempts || FileState::Of(path) == before) return result;
  }
}

// Everything, or, with a window, the end of the newest stage.
Result<Recording> ReadOnce(const std::string& path, std::optional<int64_t> window_ns) {
  auto opened = OpenRun(path);
  if (!opened) return opened.error();
  Reader& reader = opened->reader;
  Recording recording;
  recording.id = opened->meta["id"];
  recording.source = "run";
  recording.path = path;
  recording.wall_offset_ns = WallOffset(opened->meta);
  recording.tags = ReadMap(reader, "tag");
  recording.machine = ReadMap(reader, "machine");
  if (LeaveOutImplausible(recording.machine)) reader.Damaged("machine");
  recording.stages = std::move(opened->stages);
  int64_t since_ns = std::numeric_limits<int64_t>::min();
  if (window_ns) {
    Stage& newest = recording.stages.back();
    since_ns = std::max(newest.begin_ns - 1, newest.end_ns - *window_ns);
    newest.begin_ns = std::max(newest.begin_ns, since_ns);
  }
  ReadRanks(reader, recording.stages);
  ReadSteps(reader, recording.stages, since_ns);
  ReadSeries(reader, recording.stages, since_ns);
  if (!window_ns) ReadDeviceWindows(reader, recording.stages);
  ReadProcessesAndMessages(reader, recording.stages);
  if (window_ns) recording.stages.erase(recording.stages.begin(), recording.stages.end() - 1);
  if (!reader.damaged().empty()) {
    std::string tables;
    for (const std::string& table : reader.damaged()) tables += (tables.empty() ? "" : ", ") + table;
    Stage& last = recording.stages.back();
    last.messages.push_back({last.end_ns, Severity::kWarning, "reader",
                             "the run file is damaged: read as far as possible; incomplete: " + tables});
  }
  return recording;
}

Result<RunSummary> ReadSummaryOnce(const std::string& path) {
  auto opened = OpenRun(path);
  if (!opened) return opened.error();
  RunSummary summary;
  summary.id = opened->meta["id"];
  summary.path = path;
  summary.tags = ReadMap(opened->reader, "tag");
  summary.machine = ReadMap(opened->reader, "machine");
  summary.note = opened->meta["note"];
  summary.stages = std::move(opened->stages);
  summary.wall_begin_ns = summary.stages.front().begin_ns + WallOffset(opened->meta);
  // The seconds of a sampling (explain --pid) are no steps.
  constexpr char kWindows[] = R"sql(
      SELECT data FROM step_window AS w WHERE NOT EXISTS (
        SELECT 1 FROM rank AS r WHERE r.stage = w.stage AND r.rank = w.rank AND r.facts LIKE '%"sampled"%'))sql";
  opened->reader.ForEach("step_window", kWindows, [&](Statement& row) {
    const auto windows = DecodeWindows(row.TextView(0));
    if (!windows) return;
    for (const StepWindow& window : *windows)
      summary.steps = std::min(summary.steps + window.steps, kMaxCount);
  });
  std::error_code ignored;
  summary.bytes = static_cast<int64_t>(std::filesystem::file_size(path, ignored));
  return summary;
}

}  // namespace

Result<Recording> ReadRun(const std::string& path) {
  if (IsRunOfNodes(path))
    return ReadRunOfNodes(
        path, [](const std::string& of, int64_t) { return ReadRun(of); }, 0);
  return ReadUnchanged(path, [](const std::string& of) { return ReadOnce(of, std::nullopt); });
}
Result<Recording> ReadEndOfRun(const std::string& path, int64_t window_ns) {
  if (IsRunOfNodes(path)) return ReadRunOfNodes(path, ReadEndOfRun, window_ns);
  return ReadUnchanged(path, [&](const std::string& of) { return ReadOnce(of, window_ns); });
}
Result<RunSummary> ReadRunSummary(const std::string& path) {
  if (IsRunOfNodes(path)) return ReadSummaryOfNodes(path);
  return ReadUnchanged(path, ReadSummaryOnce);
}

}  // namespace fullbore::record
