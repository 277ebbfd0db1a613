// The recorder: one thread that reads the machine (probes) and the training processes
// (channels), and writes a run file.
//
// Tick() does whatever is due and says when to call it again. It never throws and never ends the run: a
// failure is reported once, and recording continues with the rest.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "measure/collect/channel_place.h"
#include "measure/collect/channel_reader.h"
#include "measure/collect/oom_kills.h"
#include "measure/collect/own_clock.h"
#include "measure/collect/rank_tracker.h"
#include "measure/collect/unseen_python.h"
#include "measure/probe/probe.h"
#include "measure/probe/registry.h"
#include "record/run_writer.h"

namespace fullbore::collect {

class Recorder {
 public:
  // `hook_directory` is empty if the processes are not meant to load the hook. `say` receives each
  // message as it comes, for the user.
  Recorder(record::RunWriter writer, ChannelPlace place, const probe::Machine& machine,
           std::string hook_directory, std::function<void(const record::Message&)> say);
  ~Recorder();

  void SetStepListener(StepListener listener) {
    step_listener_ = std::move(listener);
  }                              // before the first Tick
  int64_t Tick(int64_t now_ns);  // returns when the next one is due
  // Of the command: all that is recorded is by this clock, and nothing while it stands.
  OwnClock& clock() { return clock_; }
  void Say(record::Message message);  // to the user, and into the run file
  // Writes the last readings and the end of the stage. `exit_status` is empty if
  // the command was left running.
  record::StageState Finish(int64_t now_ns, std::optional<int> exit_status,
                            std::optional<int> ended_by_signal);

  // After Finish(): whether the run file was deleted, and writing a complete copy of it to another path.
  bool run_file_was_deleted() const { return writer_.WasDeleted(); }
  Result<void> CopyTo(const std::string& path) { return writer_.CopyTo(path); }

  struct Live {
    RankTracker::Live training;  // of all ranks: steps of the first, samples of all
    int ranks = 0;
    std::optional<double> gpu_utilization;  // mean over GPUs
    std::optional<double> cpu_utilization;
  };
  Live live(int64_t now_ns) const;

  bool wrote_everything() const { return !write_failed_; }
  bool saw_training() const;
  bool out_of_memory() const { return out_of_memory_; }

 private:
  class ProbeSink;

  void ReadChannels();
  void ReadChannel(Channel& channel);
  void SayLinesWithoutRing();
  void SayWhyUnseen();
  void NameInnerRecorders();
  RankTracker& TrackerFor(Channel& channel);
  void NumberRanks();
  void SampleProbes(int64_t now_ns, bool slow_ones);
  void Flush(int64_t now_ns);
  void DrainRanks(bool last);
  void TakeDeviceWindows(RankTracker& tracker);

  record::RunWriter writer_;
  ChannelDirectory channels_;
  OwnClock clock_;
  std::string traces_;  // the directory of device windows
  probe::ProbeSet probes_;
  std::function<void(const record::Message&)> say_;
  StepListener step_listener_;
  std::unique_ptr<ProbeSink> sink_;
  std::map<int64_t, std::unique_ptr<RankTracker>> trackers_;  // by process
  std::set<int> taken_ranks_;
  std::set<int64_t> numbered_;
  std::set<int64_t> inner_recorders_;
  int64_t begin_ns_ = 0;
  int64_t next_fast_ns_ = 0, next_slow_ns_ = 0, next_flush_ns_ = 0;
  bool write_failed_ = false;
  bool out_of_memory_ = false;
  OomKills oom_kills_;
  UnseenPythons unseen_pythons_;
  std::set<std::string> broken_;  // channels already reported as broken
};

}  // namespace fullbore::collect
