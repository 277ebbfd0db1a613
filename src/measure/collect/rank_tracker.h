// Everything known about one training process while it runs: its steps, loaders, facts and hot lines, fed
// from its channel and those of its loader workers, drained into the run file.
//
// What is kept: every step in windows of a second (five seconds after ten minutes); in full the first steps,
// those that took far longer than usual, and a stretch of consecutive steps every two minutes, so that the
// file of a day-long run stays small.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "measure/collect/allocator_meter.h"
#include "measure/collect/device_window.h"
#include "measure/collect/loader_meter.h"
#include "measure/collect/logged_meter.h"
#include "record/channel.h"
#include "record/recording.h"
#include "record/run_writer.h"
#include "timeline/host_steps.h"

namespace fullbore::collect {

// Called with each step once it is complete, on the recorder's thread, with what is known of its rank by then.
using StepListener = std::function<void(const record::RankInfo&, const record::Step&)>;

class RankTracker {
 public:
  explicit RankTracker(int64_t pid) { info_.pid = pid; }

  void OnTrainerEvent(const record::ChannelRecord& event);
  void OnWorkerEvent(int64_t worker_pid, const record::ChannelRecord& event);
  void OnLine(const nlohmann::json& line);  // of the trainer's text
  void OnWorkerLine(int64_t worker_pid, const nlohmann::json& line);
  void SetRank(int rank) { info_.rank = rank; }
  void SetStepListener(StepListener listener) { listener_ = std::move(listener); }
  void SetLostEvents(uint64_t lost) { lost_events_ = lost; }

  bool is_training() const { return is_training_; }  // an optimizer stepped, or batches count as steps
  // Whether it seems to work without an optimizer: what it does with its batches is then judged at the end.
  bool takes_batches() const { return host_steps_.batches() >= kMinBatches; }
  // At the end of a run in which no optimizer stepped.
  void CountBatchesAsSteps();
  int wanted_rank() const { return wanted_rank_; }  // $RANK of the process, -1 if unset
  const record::RankInfo& info() const { return info_; }

  // Moves what is new into `writer`; if `last`, unfinished windows too.
  void Drain(record::RunWriter& writer, bool last);

  struct Live {  // of the last seconds, for the status line
    int64_t steps = 0;
    double samples_per_s = 0;
    double steps_per_s = 0;
    double waiting_share = 0;
  };
  Live live(int64_t now_ns) const;

  // What the trainer said of windows of its profiler (device_window.h).
  std::vector<DeviceWindowNote> TakeDeviceWindows() { return std::exchange(device_windows_, {}); }
  std::vector<record::Message> TakeMessages() { return std::exchange(messages_, {}); }

 private:
  static constexpr size_t kMinBatches = 20;
  struct Worker {
    int64_t first_ns = 0;
    int64_t last_ns = 0;
  };
  struct SourceLine {
    std::string file;
    int line = 0;
    std::string function;
    std::string library;
    std::string text;  // of a notebook's cell, which is no file; else it is read from the file at the end

    auto operator<=>(const SourceLine&) const = default;  // NOLINT(modernize-use-nullptr): a false alarm
  };
  struct FetchHit {  // a sample of a worker's line sampler
    int loader = 0;
    SourceLine line;
    record::Activity activity = record::Activity::kUnknown;

    auto operator<=>(const FetchHit&) const = default;  // NOLINT(modernize-use-nullptr): a false alarm
  };

  // A fetch that a worker has begun and not finished, as far as its line sampler saw it.
  struct Unfinished {
    int64_t begin_ns = 0, seen_ns = 0;  // the first sample in it and the latest one
    FetchHit at;                        // where that found it
    int64_t samples_there = 0;
  };

  static SourceLine SourceLineOf(const nlohmann::json& line);
  record::Loader& LoaderWithId(int id);
  void OnFetch(int64_t worker_key, const record::ChannelRecord& event);
  void OnNext(const record::ChannelRecord& event);
  void OnStep(const record::Step& step, record::RunWriter& writer);
  bool KeepInFull(const record::Step& step);
  void UpdateHotLines();
  void UpdateLinesOfFetches();
  void OnLineOfFetch(int64_t worker_pid, const FetchHit& hit, int64_t t_ns);
  void StateUnfinished();
  void StatePasses();
  void OnCheckpoint(const record::ChannelRecord& event);

  record::RankInfo info_;
  StepListener listener_;  // may be empty
  timeline::HostSteps host_steps_;
  LoaderMeter loader_meter_;
  LoggedMeter logged_meter_;
  AllocatorMeter allocator_meter_;
  std::map<std::pair<int64_t, int>, Worker> workers_;  // by process and loader
  std::map<int, int64_t> epoch_end_ns_;                // by loader: its last `next`, if that brought no batch
  std::set<int> loader_counts_;                        // loaders of whose batches the samples are known
  std::set<int> drew_;                                 // loaders whose sampler drew an epoch's order
  std::map<int64_t, SourceLine> source_lines_;
  std::map<std::pair<int64_t, int64_t>, SourceLine> worker_lines_;  // by process and id
  std::map<FetchHit, int64_t> fetch_hits_;
  std::map<int64_t, Unfinished> unfinished_;  // by the worker's process
  std::map<timeline::LineHit, int64_t> line_hits_;
  std::map<std::string, int64_t> counts_;             // how often a rare message came, to report it once
  int64_t checkpoints_ = 0, last_checkpoint_ns_ = 0;  // the end of the last one
  std::vector<record::Message> messages_;
  std::vector<DeviceWindowNote> device_windows_;
  record::StepWindow window_{};
  std::deque<record::Step> recent_;
  record::Sketch wall_ns_;
  int wanted_rank_ = -1;
  int64_t steps_seen_ = 0;
  int64_t outliers_kept_ = 0;
  int64_t stretch_until_step_ = 0;
  int64_t next_stretch_ns_ = 0;
  int64_t first_step_ns_ = 0;
  int64_t next_put_ns_ = 0;
  uint64_t lost_events_ = 0;
  bool is_training_ = false;
  bool dirty_ = false;
};

}  // namespace fullbore::collect
