#include "measure/collect/recorder.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>

#include "base/clock.h"
#include "base/secrets.h"
#include "base/text.h"
#include "measure/collect/device_window.h"
#include "measure/collect/inner_run.h"
#include "measure/probe/process/process_probe.h"

namespace fullbore::collect {

namespace {

constexpr int64_t kFastNs = kNsPerSecond / 5;
constexpr int64_t kSlowNs = kNsPerSecond;
constexpr int64_t kFlushNs = kNsPerSecond;
// After ten minutes one reading per second tells as much about a run, in a fifth of the space.
constexpr int64_t kFineForNs = 600 * kNsPerSecond;
constexpr int64_t kRetryFlushNs = 10 * kNsPerSecond;
// Why steps are not seen: further ones would repeat the same for other scripts.
constexpr size_t kMostReasons = 3;

// The times that a process of this machine can have noted: any other is garbage, not an event.
bool IsPlausible(const record::ChannelRecord& event, int64_t now_ns) {
  return event.begin_ns > 0 && event.begin_ns <= event.end_ns && event.end_ns <= now_ns + kNsPerSecond;
}

bool IsMessage(const nlohmann::json& line) {
  const auto kind = line.find("k");
  return kind != line.end() && kind->is_string() && *kind == "message";
}

}  // namespace

// Passes probe readings on to the run file; remembers the latest ones that the status line shows.
class Recorder::ProbeSink : public probe::Sink {
 public:
  explicit ProbeSink(Recorder& recorder) : recorder_(recorder) {}

  void Read(const record::SeriesKey& key, int64_t t_ns, double value) override {
    recorder_.writer_.AppendReading(group, key, t_ns, value);
    if (IsOf(key, record::Metric::kCpuUtilization)) cpu_utilization = value;
    if (IsOf(key, record::Metric::kGpuUtilization)) gpu_utilization[key.labels] = value;
  }
  void Say(record::Severity severity, std::string_view source, std::string_view text) override {
    recorder_.Say({MonotonicNs(), severity, std::string(source), std::string(text)});
  }
  void SetMachineFact(std::string_view key, std::string_view value) override {
    recorder_.writer_.PutMachineFact(std::string(key), std::string(value));
  }

  int group = 0;
  std::optional<double> cpu_utilization;
  std::map<record::Labels, double> gpu_utilization;

 private:
  Recorder& recorder_;
};

Recorder::Recorder(record::RunWriter writer, ChannelPlace place, const probe::Machine& machine,
                   std::string hook_directory, std::function<void(const record::Message&)> say)
    : writer_(std::move(writer)),
      channels_(std::move(place.channel)),
      traces_(std::move(place.traces)),
      probes_(probe::MakeProbes(machine)),
      say_(std::move(say)),
      sink_(std::make_unique<ProbeSink>(*this)),
      begin_ns_(MonotonicNs()),
      oom_kills_(machine.root, machine.command_pid),
      unseen_pythons_(machine.root, std::move(hook_directory)) {}

Recorder::~Recorder() = default;

int64_t Recorder::Tick(int64_t now_ns) {
  ReadChannels();
  if (now_ns >= next_fast_ns_) {
    const bool slow_ones = now_ns >= next_slow_ns_;
    if (slow_ones) NameInnerRecorders();
    SampleProbes(now_ns, slow_ones);
    next_fast_ns_ = now_ns + (now_ns - begin_ns_ < kFineForNs ? kFastNs : kSlowNs);
    if (slow_ones) {
      next_slow_ns_ = now_ns + kSlowNs - kFastNs / 2;  // the tick nearest to a second
      channels_.RemoveFinished(now_ns);
      oom_kills_.Look();
      if (probes_.processes && !saw_training()) unseen_pythons_.Look(probes_.processes->Processes());
    }
  }
  if (now_ns >= next_flush_ns_) Flush(now_ns);
  return std::min(next_fast_ns_, now_ns + kFastNs);
}

void Recorder::SampleProbes(int64_t now_ns, bool slow_ones) {
  if (clock_.stands()) return;
  now_ns = clock_.At(now_ns);
  for (size_t i = 0; i < probes_.probes.size(); ++i) {
    probe::Probe& probe = *probes_.probes[i];
    if (probe.rate() == probe::Rate::kSlow && !slow_ones) continue;
    sink_->group = static_cast<int>(i);
    probe.Sample(now_ns, *sink_);
  }
}

RankTracker& Recorder::TrackerFor(Channel& channel) {
  const auto& header = channel.header();
  const bool is_worker = header.role == static_cast<uint32_t>(record::ChannelRole::kLoaderWorker);
  const int64_t trainer_pid = is_worker ? header.parent_pid : header.pid;
  auto& tracker = trackers_[trainer_pid];
  if (!tracker) {
    tracker = std::make_unique<RankTracker>(trainer_pid);
    tracker->SetStepListener(step_listener_);
  }
  if (probes_.processes)
    probes_.processes->SetRole(header.pid, is_worker ? "loader" : "trainer", header.rank);
  return *tracker;
}

void Recorder::ReadChannel(Channel& channel) {
  RankTracker& tracker = TrackerFor(channel);
  const bool is_worker = channel.header().role == static_cast<uint32_t>(record::ChannelRole::kLoaderWorker);
  for (const auto& line : channel.ReadLines()) {
    if (is_worker)
      tracker.OnWorkerLine(channel.header().pid, line);
    else
      tracker.OnLine(line);
  }
  std::vector<record::ChannelRecord> events = channel.ReadEvents();
  const int64_t now_ns = MonotonicNs();
  for (record::ChannelRecord& event : events) {
    if (!IsPlausible(event, now_ns)) continue;
    clock_.SetTimesOf(event);
    if (is_worker)
      tracker.OnWorkerEvent(channel.header().pid, event);
    else
      tracker.OnTrainerEvent(event);
  }
  if (!is_worker) tracker.SetLostEvents(channel.lost_events());
}

void Recorder::ReadChannels() {
  channels_.Discover();
  for (const auto& [path, channel] : channels_.channels()) {
    ReadChannel(*channel);
    if (channel->broken() && broken_.insert(path).second) {
      Say({MonotonicNs(), record::Severity::kWarning, "recorder",
           "the channel of process " + std::to_string(channel->header().pid) +
               " is corrupt: its later steps are not recorded"});
    }
  }
  NumberRanks();
  DrainRanks(/*last=*/false);
  for (const auto& [pid, tracker] : trackers_) {
    for (record::Message& message : tracker->TakeMessages()) Say(std::move(message));
  }
}

// Why the hook did not start, from processes where it could not even create a ring.
void Recorder::SayLinesWithoutRing() {
  std::set<std::string> said;
  for (const nlohmann::json& line : channels_.LinesWithoutRing()) {
    const auto text = line.find("text");
    if (!IsMessage(line) || text == line.end() || !text->is_string()) continue;
    if (said.insert(text->get<std::string>()).second)
      Say({MonotonicNs(), record::Severity::kWarning, "hook", text->get<std::string>()});
  }
}

void Recorder::SayWhyUnseen() {
  if (saw_training()) return;
  std::set<std::string> said;
  for (const auto& [pid, why] : unseen_pythons_.reasons()) {
    if (trackers_.contains(pid) || said.size() >= kMostReasons || !said.insert(why).second) continue;
    Say({MonotonicNs(), record::Severity::kWarning, "recorder", why});
  }
}

// A process that trains gets its $RANK; without one, or if another process of the command has it (two
// trainings one after the other), the next free number.
void Recorder::NumberRanks() {
  for (auto& [pid, tracker] : trackers_) {
    const bool works = tracker->is_training() || (tracker->takes_batches() && !saw_training());
    if (!works || !numbered_.insert(pid).second) continue;
    int rank = std::max(0, tracker->wanted_rank());
    while (taken_ranks_.count(rank)) ++rank;
    taken_ranks_.insert(rank);
    tracker->SetRank(rank);
    if (probes_.processes) probes_.processes->SetRole(pid, "trainer", rank);
  }
}

void Recorder::DrainRanks(bool last) {
  for (auto& [pid, tracker] : trackers_) {
    if (!tracker->is_training()) continue;
    tracker->Drain(writer_, last);
    TakeDeviceWindows(*tracker);
  }
}

void Recorder::TakeDeviceWindows(RankTracker& tracker) {
  for (const DeviceWindowNote& note : tracker.TakeDeviceWindows()) {
    auto window = TakeDeviceWindow(traces_, note);
    if (!window) {
      Say({MonotonicNs(), record::Severity::kWarning, "windows", window.error().text});
      continue;
    }
    window->rank = tracker.info().rank;
    writer_.AppendDeviceWindow(std::move(*window));
  }
}

// A full disk is reported once; unwritten data waits in memory for the next attempt.
void Recorder::Flush(int64_t now_ns) {
  if (probes_.processes) {
    for (const record::Process& process : probes_.processes->Processes()) writer_.PutProcess(process);
  }
  const auto flushed = writer_.Flush(now_ns);
  next_flush_ns_ = now_ns + (flushed.ok() ? kFlushNs : kRetryFlushNs);
  if (flushed.ok()) {
    write_failed_ = false;
  } else if (!write_failed_) {
    write_failed_ = true;
    say_({now_ns, record::Severity::kWarning, "recorder",
          flushed.error().text +
              "; the command continues, and recording resumes once the file can be written"});
  }
}

void Recorder::Say(record::Message message) {
  message.text = MaskUrls(message.text);  // the hook passes on what the user's libraries say
  say_(message);
  writer_.AppendMessage(std::move(message));
}

void Recorder::NameInnerRecorders() {
  if (!probes_.processes) return;
  for (const int64_t pid : InnerRecorders(channels_.LinesWithoutRing())) {
    if (inner_recorders_.insert(pid).second)  // once: its number may become another's
      probes_.processes->SetRole(pid, std::string(record::kRecorderRole), -1);
  }
}

record::StageState Recorder::Finish(int64_t now_ns, std::optional<int> exit_status,
                                    std::optional<int> ended_by_signal) {
  ReadChannels();
  SampleProbes(now_ns, /*slow_ones=*/true);
  if (!saw_training()) {
    for (auto& [pid, tracker] : trackers_) tracker->CountBatchesAsSteps();
    NumberRanks();
  }
  DrainRanks(/*last=*/true);
  SayLinesWithoutRing();
  SayWhyUnseen();
  if (clock_.stood_ns() > 0)
    Say({MonotonicNs(), record::Severity::kInfo, "turns",
         fmt::format(
             "it stood still for {} in all, while another trial had its turn: steps are timed without that",
             FormatDuration(clock_.stood_ns()))});
  out_of_memory_ = oom_kills_.Happened(ended_by_signal == SIGKILL);
  if (probes_.processes) {
    for (const record::Process& process : probes_.processes->Processes()) writer_.PutProcess(process);
  }
  const auto state = exit_status ? record::StageState::kEnded : record::StageState::kRunning;
  const auto closed = writer_.Close(clock_.At(now_ns), state, exit_status, out_of_memory_);
  if (!closed.ok() && !write_failed_) {
    say_({now_ns, record::Severity::kWarning, "recorder",
          closed.error().text + "; the end of the run was not written to disk"});
  }
  write_failed_ = write_failed_ || !closed.ok();
  return state;
}

bool Recorder::saw_training() const {
  return std::any_of(trackers_.begin(), trackers_.end(),
                     [](const auto& t) { return t.second->is_training(); });
}

Recorder::Live Recorder::live(int64_t now_ns) const {
  Live live;
  for (const auto& [pid, tracker] : trackers_) {
    if (!tracker->is_training()) continue;
    const RankTracker::Live one = tracker->live(now_ns);
    if (live.ranks++ == 0) {
      live.training = one;
    } else {
      live.training.samples_per_s += one.samples_per_s;
      live.training.waiting_share = std::max(live.training.waiting_share, one.waiting_share);
    }
  }
  live.cpu_utilization = sink_->cpu_utilization;
  for (const auto& [labels, value] : sink_->gpu_utilization) {
    live.gpu_utilization =
        live.gpu_utilization.value_or(0) + value / static_cast<double>(sink_->gpu_utilization.size());
  }
  return live;
}

}  // namespace fullbore::collect
