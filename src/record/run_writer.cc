#include "record/run_writer.h"

#include <sys/stat.h>

#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "record/run_schema.h"
#include "record/step_codec.h"

namespace fullbore::record {

namespace {

constexpr size_t kReadingsPerBlock =
    64;  // 13 s at 5 readings per second: cheap to rewrite, still compresses well
constexpr size_t kStepsPerBlock = 256;
constexpr size_t kWindowsPerBlock = 64;
// When nothing can be written any more, blocks stop growing at this many rows: a day of
// windows, an hour of readings.
constexpr size_t kRowsWhileFailing = 1 << 14;

int64_t Quantise(double value, double resolution) {
  if (resolution > 0) return std::llround(value / resolution);
  int64_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

// Runs `statements` in order until one fails.
template <typename... Calls>
Result<void> InOrder(Calls&&... calls) {
  Result<void> result;
  (void)((result = calls(), result.ok()) && ...);
  return result;
}

}  // namespace

Result<RunWriter> RunWriter::Open(const std::string& path, const StageInfo& info, int64_t now_ns,
                                  int64_t wall_ns) {
  auto database = Database::OpenForWriting(path);
  if (!database) return database.error();
  RunWriter writer(std::move(*database), path);
  const auto written = InOrder([&] { return writer.database_.Execute("BEGIN IMMEDIATE"); },
                               [&] { return writer.database_.Execute(kRunTables); },
                               [&] { return writer.WriteStage(info, now_ns, wall_ns); },
                               [&] { return writer.database_.Execute("COMMIT"); });
  if (!written)
    return Error{written.error().code, "cannot write '" + path + "': " + written.error().text, ""};
  return writer;
}

Result<void> RunWriter::WriteStage(const StageInfo& info, int64_t now_ns, int64_t wall_ns) {
  auto meta = database_.Prepare("INSERT OR IGNORE INTO meta VALUES (?, ?)");
  if (!meta) return meta.error();
  const std::string offset = std::to_string(wall_ns - now_ns);
  for (const auto& [key, value] : {std::pair<std::string, std::string>{"format", kRunFormat},
                                   {"id", info.run_id},
                                   {"wall_offset_ns", offset}}) {
    if (auto done = meta->Bind(key).Bind(value).Run(); !done) return done;
  }
  auto tag = database_.Prepare("INSERT OR REPLACE INTO tag VALUES (?, ?)");
  if (!tag) return tag.error();
  for (const auto& [key, value] : info.tags) {
    if (auto done = tag->Bind(key).Bind(value).Run(); !done) return done;
  }
  auto same = database_.Prepare("SELECT count(*) FROM stage WHERE name = ?1 OR name LIKE ?1 || '-%'");
  if (!same) return same.error();
  same->Bind(info.name);
  const int64_t namesakes = same->Next() ? same->Int(0) : 0;
  while (same->Next()) {
  }
  const std::string name = namesakes ? info.name + "-" + std::to_string(namesakes + 1) : info.name;
  auto stage = database_.Prepare(
      "INSERT INTO stage (name, command, directory, begin_ns, end_ns, state) VALUES (?, ?, ?, ?, ?, 0)");
  if (!stage) return stage.error();
  const std::string command =
      nlohmann::json(info.command).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  if (auto done = stage->Bind(name).Bind(command).Bind(info.directory).Bind(now_ns).Bind(now_ns).Run();
      !done) {
    return done;
  }
  auto id = database_.Prepare("SELECT max(id), (SELECT coalesce(max(id), 0) FROM series) FROM stage");
  if (!id) return id.error();
  if (id->Next()) {
    stage_id_ = id->Int(0);
    // A range of its own, so that two stages recorded at once do not collide.
    next_series_id_ = stage_id_ * 1'000'000;
  }
  return {};
}

int64_t RunWriter::SeriesId(const SeriesKey& key) {
  const auto [at, is_new] = series_ids_.try_emplace(key, next_series_id_);
  if (is_new) new_series_.emplace_back(next_series_id_++, key);
  return at->second;
}

void RunWriter::AppendReading(int group, const SeriesKey& key, int64_t t_ns, double value) {
  if (!std::isfinite(value)) return;
  Group& into = groups_[group];
  if (into.times_ns.size() >= kRowsWhileFailing) return;
  if (into.times_ns.empty() || into.times_ns.back() < t_ns) into.times_ns.push_back(t_ns);
  Column& column = into.columns[SeriesId(key)];
  column.values.resize(into.times_ns.size());
  column.present.resize(into.times_ns.size());
  column.values.back() = Quantise(value, key.resolution);
  column.present.back() = true;
  into.dirty = true;
}

void RunWriter::AppendStep(int rank, const Step& step) {
  StepBlock& block = step_blocks_[rank];
  if (block.steps.size() >= kRowsWhileFailing) return;
  block.steps.push_back(step);
  block.dirty = true;
}

void RunWriter::AppendWindow(int rank, const StepWindow& window) {
  WindowBlock& block = window_blocks_[rank];
  if (block.windows.size() >= kRowsWhileFailing) return;
  block.windows.push_back(window);
  block.dirty = true;
}

void RunWriter::PutRank(const RankInfo& info) { dirty_ranks_.insert_or_assign(info.rank, info); }
void RunWriter::PutProcess(const Process& process) {
  dirty_processes_.insert_or_assign(process.pid, process);
}
void RunWriter::AppendDeviceWindow(DeviceWindow window) { new_device_windows_.push_back(std::move(window)); }
void RunWriter::AppendMessage(const Message& message) { new_messages_.push_back(message); }
void RunWriter::PutMachineFact(const std::string& key, const std::string& value) {
  new_machine_facts_[key] = value;
}

// After its index was lost. As long as it cannot be opened, nothing is written.
Result<void> RunWriter::OpenAgain() {
  if (database_.is_open() && !database_.lost_index()) return {};
  if (WasDeleted()) return Error{ErrorCode::kNotFound, "cannot write '" + path_ + "': it was deleted", ""};
  database_.Close();
  auto again = Database::OpenForWriting(path_);
  if (!again) return again.error();
  database_ = std::move(*again);
  return {};
}

Result<void> RunWriter::Flush(int64_t now_ns) {
  if (auto usable = OpenAgain(); !usable) return usable;
  if (auto begun = database_.Execute("BEGIN IMMEDIATE"); !begun) return begun;
  auto written = InOrder([&] { return WriteAll(now_ns); }, [&] { return database_.Execute("COMMIT"); });
  if (!written) {
    (void)database_.Execute("ROLLBACK");
    return written;
  }
  new_series_.clear();
  dirty_ranks_.clear();
  dirty_processes_.clear();
  new_messages_.clear();
  new_device_windows_.clear();
  new_machine_facts_.clear();
  SealFullBlocks();
  return {};
}

void RunWriter::SealFullBlocks() {
  for (auto& [id, group] : groups_) {
    group.dirty = false;
    if (group.times_ns.size() >= kReadingsPerBlock) group = Group();
  }
  for (auto& [rank, block] : step_blocks_) {
    block.dirty = false;
    if (block.steps.size() >= kStepsPerBlock) block.steps.clear();
  }
  for (auto& [rank, block] : window_blocks_) {
    block.dirty = false;
    if (block.windows.size() >= kWindowsPerBlock) block.windows.clear();
  }
}

Result<void> RunWriter::WriteAll(int64_t now_ns) {
  auto stage = database_.Prepare("UPDATE stage SET end_ns = ? WHERE id = ?");
  auto machine = database_.Prepare("INSERT OR REPLACE INTO machine VALUES (?, ?)");
  auto message = database_.Prepare("INSERT INTO message VALUES (?, ?, ?, ?, ?)");
  auto process = database_.Prepare("INSERT OR REPLACE INTO process VALUES (?, ?, ?, ?, ?, ?, ?, ?)");
  if (!stage) return stage.error();
  if (!machine) return machine.error();
  if (!message) return message.error();
  if (!process) return process.error();
  if (auto done = stage->Bind(now_ns).Bind(stage_id_).Run(); !done) return done;
  for (const auto& [key, value] : new_machine_facts_) {
    if (auto done = machine->Bind(key).Bind(value).Run(); !done) return done;
  }
  for (const Message& m : new_messages_) {
    message->Bind(stage_id_);
    m.t_ns ? message->Bind(*m.t_ns) : message->BindNull();
    message->Bind(static_cast<int64_t>(m.severity)).Bind(m.source).Bind(m.text);
    if (auto done = message->Run(); !done) return done;
  }
  for (const auto& [pid, p] : dirty_processes_) {
    process->Bind(stage_id_)
        .Bind(p.pid)
        .Bind(p.parent_pid)
        .Bind(p.role)
        .Bind(int64_t{p.rank})
        .Bind(p.command);
    if (auto done = process->Bind(p.begin_ns).Bind(p.end_ns).Run(); !done) return done;
  }
  for (const auto& [rank, info] : dirty_ranks_) {
    if (auto done = WriteRank(info); !done) return done;
  }
  return InOrder([&] { return WriteNewSeries(); }, [&] { return WriteGroups(); },
                 [&] { return WriteSteps(); }, [&] { return WriteDeviceWindows(); });
}

Result<void> RunWriter::WriteNewSeries() {
  if (new_series_.empty()) return {};
  auto insert = database_.Prepare("INSERT INTO series VALUES (?, ?, ?, ?, ?, ?)");
  if (!insert) return insert.error();
  for (const auto& [id, key] : new_series_) {
    insert->Bind(id)
        .Bind(stage_id_)
        .Bind(key.name)
        .Bind(key.unit)
        .Bind(MapToJson(key.labels))
        .Bind(key.resolution);
    if (auto done = insert->Run(); !done) return done;
  }
  return {};
}

// A block of readings: column 0 holds the times, column 1 the ids of the series, then one column per series.
Result<void> RunWriter::WriteGroups() {
  auto insert = database_.Prepare("INSERT OR REPLACE INTO readings VALUES (?, ?, ?, ?, ?, ?)");
  if (!insert) return insert.error();
  for (auto& [id, group] : groups_) {
    if (!group.dirty) continue;
    std::vector<Column> columns(2);
    columns[0].values = group.times_ns;
    size_t count = 0;
    for (auto& [series, column] : group.columns) {
      columns[1].values.push_back(series);
      column.values.resize(group.times_ns.size());
      column.present.resize(group.times_ns.size());
      columns.push_back(column);
      const auto present =
          static_cast<size_t>(std::count(column.present.begin(), column.present.end(), true));
      if (present == column.present.size()) columns.back().present.clear();
      count += present;
    }
    insert->Bind(stage_id_).Bind(int64_t{id}).Bind(group.times_ns.front()).Bind(group.times_ns.back());
    if (auto done = insert->Bind(static_cast<int64_t>(count)).BindBlob(EncodeColumns(columns)).Run(); !done)
      return done;
  }
  return {};
}

Result<void> RunWriter::WriteSteps() {
  auto steps = database_.Prepare("INSERT OR REPLACE INTO step VALUES (?, ?, ?, ?, ?)");
  auto windows = database_.Prepare("INSERT OR REPLACE INTO step_window VALUES (?, ?, ?, ?, ?)");
  if (!steps) return steps.error();
  if (!windows) return windows.error();
  for (const auto& [rank, block] : step_blocks_) {
    if (!block.dirty) continue;
    steps->Bind(stage_id_).Bind(int64_t{rank}).Bind(block.steps.front().end_ns);
    steps->Bind(static_cast<int64_t>(block.steps.size())).BindBlob(EncodeSteps(block.steps));
    if (auto done = steps->Run(); !done) return done;
  }
  for (const auto& [rank, block] : window_blocks_) {
    if (!block.dirty) continue;
    windows->Bind(stage_id_).Bind(int64_t{rank}).Bind(block.windows.front().begin_ns);
    windows->Bind(static_cast<int64_t>(block.windows.size())).BindBlob(EncodeWindows(block.windows));
    if (auto done = windows->Run(); !done) return done;
  }
  return {};
}

Result<void> RunWriter::WriteDeviceWindows() {
  if (new_device_windows_.empty()) return {};
  auto insert = database_.Prepare("INSERT OR REPLACE INTO device_window VALUES (?, ?, ?, ?, ?)");
  if (!insert) return insert.error();
  for (const DeviceWindow& window : new_device_windows_) {
    insert->Bind(stage_id_).Bind(int64_t{window.rank}).Bind(window.first_step).Bind(window.steps);
    if (auto done = insert->BindBlob(window.trace).Run(); !done) return done;
  }
  return {};
}

Result<void> RunWriter::WriteRank(const RankInfo& info) {
  auto rank = database_.Prepare("INSERT OR REPLACE INTO rank VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
  auto loader = database_.Prepare("INSERT OR REPLACE INTO loader VALUES (?, ?, ?, ?, ?, ?, ?)");
  if (!rank) return rank.error();
  if (!loader) return loader.error();
  rank->Bind(stage_id_).Bind(int64_t{info.rank}).Bind(info.pid).Bind(info.hostname).Bind(info.device);
  rank->Bind(int64_t{info.samples_known}).Bind(int64_t{info.device_activity}).Bind(TotalsToJson(info));
  if (auto done = rank->Bind(MapToJson(info.facts)).Bind(HotLinesToJson(info.hot_lines)).Run(); !done)
    return done;
  for (const Loader& l : info.loaders) {
    loader->Bind(stage_id_).Bind(int64_t{info.rank}).Bind(int64_t{l.id}).Bind(LoaderToJson(l));
    loader->BindBlob(l.batch_fetch_ns.Encode()).BindBlob(l.slowest_sample_ns.Encode());
    if (auto done = loader->BindBlob(l.wait_ns.Encode()).Run(); !done) return done;
  }
  return {};
}

Result<void> RunWriter::Close(int64_t now_ns, StageState state, std::optional<int> exit_status,
                              bool out_of_memory) {
  if (auto done = Flush(now_ns); !done) return done;
  auto stage =
      database_.Prepare("UPDATE stage SET state = ?, exit_status = ?, out_of_memory = ? WHERE id = ?");
  if (!stage) return stage.error();
  stage->Bind(static_cast<int64_t>(state));
  if (exit_status)
    stage->Bind(int64_t{*exit_status});
  else
    stage->BindNull();
  if (auto done = stage->Bind(int64_t{out_of_memory}).Bind(stage_id_).Run(); !done) return done;
  if (WasDeleted()) return {};  // SQLite can no longer read it
  // Fails while another stage or a reader has the file open; it is whole either way.
  (void)database_.Execute("PRAGMA wal_checkpoint(TRUNCATE); PRAGMA journal_mode=DELETE;");
  return {};
}

bool RunWriter::IsOnlyStage() {
  auto others = database_.Prepare("SELECT count(*) FROM stage WHERE id <> ?");
  if (!others) return false;
  return others->Bind(stage_id_).Next() && others->Int(0) == 0;
}

std::optional<RunWriter::FileIdentity> RunWriter::IdentityOf(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return std::nullopt;
  return FileIdentity(status.st_dev, status.st_ino);
}

bool RunWriter::WasDeleted() const { return IdentityOf(path_) != identity_; }

Result<void> RunWriter::CopyTo(const std::string& path) {
  auto copy = database_.Prepare("VACUUM INTO ?");
  if (!copy) return copy.error();
  return copy->Bind(path).Run();
}

}  // namespace fullbore::record
