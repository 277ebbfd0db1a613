// Writes a run file while the run goes on: an SQLite database in write-ahead mode, which can be read at any
// moment and survives the death of its writer up to the last flush. The tables are documented in
// docs/run-file.md and declared in run_schema.h.
//
// Owned and called by the recorder thread alone. Append... only buffers; Flush() is one
// transaction, meant to run once a second. A failed flush (disk full) loses nothing as long as
// memory lasts: the next one tries again.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "record/columns.h"
#include "record/database.h"
#include "record/recording.h"

namespace fullbore::record {

struct StageInfo {
  std::string run_id;
  std::string name;
  std::vector<std::string> command;
  std::string directory;
  std::map<std::string, std::string> tags;
};

class RunWriter {
 public:
  // Creates the file, or adds a stage to it if it exists (--run ID --stage NAME). A stage whose name is
  // taken gets a number appended.
  static Result<RunWriter> Open(const std::string& path, const StageInfo& info, int64_t now_ns,
                                int64_t wall_ns);

  int64_t stage_id() const { return stage_id_; }
  bool IsOnlyStage();  // nothing else is in the file

  // Readings of one group (a probe) share their times. Within a group t_ns never goes back.
  void AppendReading(int group, const SeriesKey& key, int64_t t_ns, double value);
  void AppendStep(int rank, const Step& step);
  void AppendWindow(int rank, const StepWindow& window);
  void PutRank(
      const RankInfo& info);  // facts, loaders, hot lines and totals as they stand; replaces what was there
  void PutProcess(const Process& process);
  void AppendDeviceWindow(DeviceWindow window);
  void AppendMessage(const Message& message);
  void PutMachineFact(const std::string& key, const std::string& value);

  Result<void> Flush(int64_t now_ns);
  // The last flush; then the write-ahead log is merged into the file.
  Result<void> Close(int64_t now_ns, StageState state, std::optional<int> exit_status, bool out_of_memory);
  // Whether the file was deleted from its place. We can still read it until the writer is gone as well.
  bool WasDeleted() const;
  // Writes a complete copy of it to another path.
  Result<void> CopyTo(const std::string& path);

 private:
  struct Group {
    std::vector<int64_t> times_ns;
    std::map<int64_t, Column> columns;  // by series
    bool dirty = false;
  };
  struct StepBlock {
    std::vector<Step> steps;
    bool dirty = false;
  };
  struct WindowBlock {
    std::vector<StepWindow> windows;
    bool dirty = false;
  };

  using FileIdentity = std::pair<uint64_t, uint64_t>;  // device and inode

  RunWriter(Database database, const std::string& path)
      : database_(std::move(database)), path_(path), identity_(IdentityOf(path)) {}
  static std::optional<FileIdentity> IdentityOf(const std::string& path);
  int64_t SeriesId(const SeriesKey& key);
  Result<void> WriteAll(int64_t now_ns);
  Result<void> WriteStage(const StageInfo& info, int64_t now_ns, int64_t wall_ns);
  Result<void> WriteNewSeries();
  Result<void> WriteGroups();
  Result<void> WriteSteps();
  Result<void> WriteRank(const RankInfo& info);
  Result<void> WriteDeviceWindows();
  void SealFullBlocks();

  Result<void> OpenAgain();
  Database database_;
  std::string path_;
  std::optional<FileIdentity> identity_;
  int64_t stage_id_ = 0;
  int64_t next_series_id_ = 1;
  std::map<SeriesKey, int64_t> series_ids_;
  std::vector<std::pair<int64_t, SeriesKey>> new_series_;
  std::map<int, Group> groups_;
  std::map<int, StepBlock> step_blocks_;
  std::map<int, WindowBlock> window_blocks_;
  std::map<int, RankInfo> dirty_ranks_;
  std::map<int64_t, Process> dirty_processes_;
  std::vector<DeviceWindow> new_device_windows_;
  std::vector<Message> new_messages_;
  std::map<std::string, std::string> new_machine_facts_;
};

}  // namespace fullbore::record
