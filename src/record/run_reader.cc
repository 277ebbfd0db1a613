#include "record/run_reader.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "record/columns.h"
#include "record/database.h"
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

// Reads table after table; a table that breaks off keeps its first rows, and is named in `damaged`.
class Reader {
 public:
  explicit Reader(Database database) : database_(std::move(database)) {}

  // Calls row(statement) for each row of `sql`, which asks `table`.
  template <typename Row>
  void ForEach(const std::string& table, const std::string& sql, Row row) {
    if (database_.ColumnsOf(table) == nullptr) return Damaged(table);
    auto statement = database_.Prepare(sql);
    if (!statement) return Damaged(table);
    while (statement->Next()) row(*statement);
    if (!statement->status().ok()) Damaged(table);
  }

  void Damaged(const std::string& table) {
    if (std::find(damaged_.begin(), damaged_.end(), table) == damaged_.end()) damaged_.push_back(table);
  }
  const std::vector<std::string>& damaged() const { return damaged_; }

 private:
  Database database_;
  std::vector<std::string> damaged_;
};

Stage* StageOf(std::vector<Stage>& stages, int64_t id) {
  for (Stage& stage : stages) {
    if (stage.id == id) return &stage;
  }
  return nullptr;
}

RankInfo* RankOf(std::vector<Stage>& stages, int64_t stage_id, int64_t rank) {
  Stage* stage = StageOf(stages, stage_id);
  if (!stage) return nullptr;
  for (RankInfo& info : stage->ranks) {
    if (info.rank == rank) return &info;
  }
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
      "SELECT id, name, command, directory, begin_ns, end_ns, state, exit_status, out_of_memory FROM stage "
      "ORDER BY id",
      [&](Statement& row) {
        Stage& stage = stages.emplace_back();
        stage.id = row.Int(0);
        stage.name = row.Text(1);
        const auto words = nlohmann::json::parse(row.Text(2), nullptr, false);
        if (words.is_array()) {
          for (const auto& word : words) {
            if (word.is_string()) stage.command.push_back(word.get<std::string>());
          }
        }
        stage.directory = row.Text(3);
        stage.begin_ns = row.Int(4);
        stage.end_ns = row.Int(5);
        stage.state = static_cast<StageState>(row.Int(6));
        if (!row.IsNull(7)) stage.exit_status = static_cast<int>(row.Int(7));
        stage.out_of_memory = row.Int(8) != 0;
      });
  return stages;
}

void ReadRanks(Reader& reader, std::vector<Stage>& stages) {
  reader.ForEach(
      "rank",
      "SELECT stage, rank, pid, hostname, device, samples_known, device_activity, totals, facts, hot_lines "
      "FROM rank ORDER BY stage, rank",
      [&](Statement& row) {
        RankInfo* info = RankOf(stages, row.Int(0), row.Int(1));
        if (!info) return;
        info->pid = row.Int(2);
        info->hostname = row.Text(3);
        info->device = row.Text(4);
        info->samples_known = row.Int(5) != 0;
        info->device_activity = row.Int(6) != 0;
        TotalsFromJson(row.Text(7), *info);
        info->facts = MapFromJson(row.Text(8));
        info->hot_lines = HotLinesFromJson(row.Text(9));
      });
  reader.ForEach(
      "loader",
      "SELECT stage, rank, about, batch_fetch, slowest_sample, wait, id FROM loader ORDER BY stage, rank, id",
      [&](Statement& row) {
        RankInfo* info = RankOf(stages, row.Int(0), row.Int(1));
        if (!info) return;
        Loader loader = LoaderFromJson(row.Text(2));
        loader.id = static_cast<int>(row.Int(6));
        TakeBlob(reader, "loader", Sketch::Decode(row.Text(3)), loader.batch_fetch_ns);
        TakeBlob(reader, "loader", Sketch::Decode(row.Text(4)), loader.slowest_sample_ns);
        TakeBlob(reader, "loader", Sketch::Decode(row.Text(5)), loader.wait_ns);
        info->loaders.push_back(std::move(loader));
      });
}

void ReadSteps(Reader& reader, std::vector<Stage>& stages) {
  reader.ForEach("step", "SELECT stage, rank, data FROM step ORDER BY stage, rank, first_end_ns",
                 [&](Statement& row) {
                   std::vector<Step> steps;
                   TakeBlob(reader, "step", DecodeSteps(row.Text(2)), steps);
                   RankInfo* info = RankOf(stages, row.Int(0), row.Int(1));
                   if (info) info->steps.insert(info->steps.end(), steps.begin(), steps.end());
                 });
  reader.ForEach("step_window", "SELECT stage, rank, data FROM step_window ORDER BY stage, rank, begin_ns",
                 [&](Statement& row) {
                   std::vector<StepWindow> windows;
                   TakeBlob(reader, "step_window", DecodeWindows(row.Text(2)), windows);
                   RankInfo* info = RankOf(stages, row.Int(0), row.Int(1));
                   if (info) info->windows.insert(info->windows.end(), windows.begin(), windows.end());
                 });
  for (Stage& stage : stages) {
    for (RankInfo& info : stage.ranks) {
      std::sort(info.steps.begin(), info.steps.end(),
                [](const Step& a, const Step& b) { return a.index < b.index; });
    }
  }
}

// Column 0 the times, column 1 the series' ids, then a column a series: see RunWriter.
void AppendBlock(const std::vector<Column>& columns, std::map<int64_t, Series>& series) {
  if (columns.size() < 2) return;
  const auto& times = columns[0].values;
  for (size_t c = 0; c < columns[1].values.size() && c + 2 < columns.size(); ++c) {
    const Column& column = columns[c + 2];
    const auto into = series.find(columns[1].values[c]);
    if (into == series.end() || column.values.size() != times.size()) continue;
    for (size_t i = 0; i < times.size(); ++i) {
      if (!column.present.empty() && !column.present[i]) continue;
      into->second.readings.push_back({times[i], Dequantise(column.values[i], into->second.key.resolution)});
    }
  }
}

void ReadSeries(Reader& reader, std::vector<Stage>& stages) {
  std::map<int64_t, Series> series;
  std::map<int64_t, int64_t> stage_of;
  reader.ForEach(
      "series", "SELECT id, stage, name, unit, labels, resolution FROM series", [&](Statement& row) {
        stage_of[row.Int(0)] = row.Int(1);
        series[row.Int(0)].key = {row.Text(2), row.Text(3), MapFromJson(row.Text(4)), row.Double(5)};
      });
  reader.ForEach("readings", "SELECT data FROM readings ORDER BY stage, probe, begin_ns",
                 [&](Statement& row) {
                   std::vector<Column> columns;
                   TakeBlob(reader, "readings", DecodeColumns(row.Text(0)), columns);
                   AppendBlock(columns, series);
                 });
  for (auto& [id, one] : series) {
    if (Stage* stage = StageOf(stages, stage_of[id])) stage->series.push_back(std::move(one));
  }
}

void ReadProcessesAndMessages(Reader& reader, std::vector<Stage>& stages) {
  reader.ForEach(
      "process",
      "SELECT stage, pid, parent_pid, role, rank, command, begin_ns, end_ns FROM process ORDER BY begin_ns",
      [&](Statement& row) {
        Stage* stage = StageOf(stages, row.Int(0));
        if (!stage) return;
        stage->processes.push_back({row.Int(1), row.Int(2), row.Text(3), static_cast<int>(row.Int(4)),
                                    row.Text(5), row.Int(6), row.Int(7)});
      });
  reader.ForEach("message", "SELECT stage, t_ns, severity, source, text FROM message ORDER BY t_ns",
                 [&](Statement& row) {
                   Stage* stage = StageOf(stages, row.Int(0));
                   if (!stage) return;
                   const auto severity = static_cast<Severity>(std::clamp<int64_t>(row.Int(2), 0, 2));
                   const auto t_ns = row.IsNull(1) ? std::nullopt : std::optional(row.Int(1));
                   stage->messages.push_back({t_ns, severity, row.Text(3), row.Text(4)});
                 });
}

Error NoRunFile(const std::string& path, const std::string& why) {
  return {ErrorCode::kCorrupt, "cannot read '" + path + "' as a run file of fullbore: " + why,
          "a run file ends in .fbr; `fullbore runs` lists those that are here"};
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
    return NoRunFile(path, database.error().text);
  }
  Opened opened{Reader(std::move(*database)), {}, {}};
  opened.meta = ReadMap(opened.reader, "meta");
  const std::string format = opened.meta.count("format") ? opened.meta["format"] : "";
  if (format.empty())
    return NoRunFile(path, "it holds no format mark (empty, cut off at the start, or foreign)");
  if (format != kRunFormat) {
    return Error{ErrorCode::kUnsupported,
                 "'" + path + "' has the format '" + format + "', this fullbore reads '" + kRunFormat + "'",
                 "read it with the version of fullbore that wrote it, or a newer one"};
  }
  opened.stages = ReadStages(opened.reader);
  if (opened.stages.empty()) return NoRunFile(path, "the table of its stages is lost");
  return opened;
}

int64_t WallOffset(const std::map<std::string, std::string>& meta) {
  const auto at = meta.find("wall_offset_ns");
  return at == meta.end() ? 0 : ParseInt(at->second).value_or(0);
}

// A file that a recorder begins to change while it is read is read again.
template <typename Read>
auto ReadUnchanged(const std::string& path, Read read) {
  constexpr int kAttempts = 3;
  for (int attempt = 1;; ++attempt) {
    const FileState before = FileState::Of(path);
    auto result = read(path);
    if (attempt == kAttempts || FileState::Of(path) == before) return result;
  }
}

Result<Recording> ReadOnce(const std::string& path) {
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
  recording.stages = std::move(opened->stages);
  ReadRanks(reader, recording.stages);
  ReadSteps(reader, recording.stages);
  ReadSeries(reader, recording.stages);
  ReadProcessesAndMessages(reader, recording.stages);
  if (!reader.damaged().empty()) {
    std::string tables;
    for (const std::string& table : reader.damaged()) tables += (tables.empty() ? "" : ", ") + table;
    Stage& last = recording.stages.back();
    last.messages.push_back({last.end_ns, Severity::kWarning, "reader",
                             "the run file is damaged; read as far as it goes, lost parts of: " + tables});
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
  summary.stages = std::move(opened->stages);
  summary.wall_begin_ns = summary.stages.front().begin_ns + WallOffset(opened->meta);
  opened->reader.ForEach("step_window", "SELECT data FROM step_window", [&](Statement& row) {
    const auto windows = DecodeWindows(row.Text(0));
    if (!windows) return;
    for (const StepWindow& window : *windows) summary.steps += window.steps;
  });
  std::error_code ignored;
  summary.bytes = static_cast<int64_t>(std::filesystem::file_size(path, ignored));
  return summary;
}

}  // namespace

Result<Recording> ReadRun(const std::string& path) { return ReadUnchanged(path, ReadOnce); }
Result<RunSummary> ReadRunSummary(const std::string& path) { return ReadUnchanged(path, ReadSummaryOnce); }

}  // namespace fullbore::record
