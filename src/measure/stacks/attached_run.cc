#include "measure/stacks/attached_run.h"

#include <fmt/format.h>
#include <time.h>

#include <filesystem>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/secrets.h"
#include "measure/collect/run_name.h"
#include "measure/collect/run_place.h"
#include "measure/probe/process/process_probe.h"
#include "measure/probe/registry.h"
#include "measure/stacks/family.h"
#include "measure/stacks/py_spy.h"
#include "measure/stacks/sampled_ranks.h"
#include "record/run_writer.h"

namespace fullbore::stacks {

namespace {

constexpr int64_t kTickNs = kNsPerSecond / 5;
constexpr int64_t kSecondsToLearn = 2;  // who trains, and who loads
constexpr double kLeastSeconds =
    1;  // of samples, whoever presses Ctrl-C: without any there is nothing to say

class WriterSink : public probe::Sink {
 public:
  explicit WriterSink(record::RunWriter& writer) : writer_(writer) {}
  void Read(const record::SeriesKey& key, int64_t t_ns, double value) override {
    writer_.AppendReading(group, key, t_ns, value);
  }
  void Say(record::Severity severity, std::string_view source, std::string_view text) override {
    writer_.AppendMessage({MonotonicNs(), severity, std::string(source), MaskUrls(text)});
  }
  void SetMachineFact(std::string_view key, std::string_view value) override {
    writer_.PutMachineFact(std::string(key), std::string(value));
  }
  int group = 0;

 private:
  record::RunWriter& writer_;
};

class AttachedRun {
 public:
  AttachedRun(const AttachOptions& options, record::RunWriter writer)
      : options_(options),
        writer_(std::move(writer)),
        sink_(writer_),
        probes_(probe::MakeProbes({"", options.target.pid, "", options.keep_command_lines})),
        family_("/proc", options.target.pid),
        sources_(fmt::format("/proc/{}/root", options.target.pid), options.target.directory) {}

  Result<void> Record() {
    if (auto learned = LearnRoles(); !learned) return learned.error();
    auto spy = PySpy::Start(options_.py_spy, options_.target.pid, options_.seconds);
    if (!spy) return spy.error();
    const int64_t begin_ns = MonotonicNs();
    bool stopped = false;
    while (!spy->HasEnded()) {
      const int64_t now_ns = MonotonicNs();
      Tick(now_ns);
      const double gone_s = static_cast<double>(now_ns - begin_ns) / 1e9;
      const bool goes_on = options_.goes_on(gone_s) || gone_s < kLeastSeconds;
      if (!goes_on && !std::exchange(stopped, true)) spy->Stop();
      Pause();
    }
    const int64_t end_ns = MonotonicNs();
    Tick(end_ns);
    const auto profile = spy->Take();
    if (!profile) return profile.error();
    const auto ranks = RanksOf(*profile, family_, sources_, kSamplesPerSecond, end_ns);
    if (ranks.empty()) SayThatNothingTrains(*profile);
    for (const record::RankInfo& rank : ranks) Put(rank);
    for (const record::Process& one : probes_.processes->Processes()) writer_.PutProcess(one);
    return writer_.Close(end_ns, record::StageState::kEnded, std::nullopt, false);
  }

 private:
  static void Pause() {
    const timespec pause = {0, kTickNs};
    nanosleep(&pause, nullptr);
  }

  // A child of a trainer may train as well (torch.multiprocessing.spawn) or load, and the probes' series are of roles.
  Result<void> LearnRoles() {
    auto spy = PySpy::Start(options_.py_spy, options_.target.pid, kSecondsToLearn);
    if (!spy) return spy.error();
    while (!spy->HasEnded()) Pause();
    const auto profile = spy->Take();
    if (!profile) return profile.error();
    family_.Look();
    for (const auto& [pid, role] : RolesIn(*profile, family_, sources_)) family_.SetRole(pid, role);
    return {};
  }

  void Tick(int64_t now_ns) {
    const bool slow = ticks_++ % 5 == 0;
    if (slow) family_.Look();
    for (const auto& [pid, member] : family_.members())
      if (slow) probes_.processes->SetRole(pid, member.role, member.rank);
    for (size_t i = 0; i < probes_.probes.size(); ++i) {
      if (probes_.probes[i]->rate() == probe::Rate::kSlow && !slow) continue;
      sink_.group = static_cast<int>(i);
      probes_.probes[i]->Sample(now_ns, sink_);
    }
    if (slow) (void)writer_.Flush(now_ns);
  }

  void Put(const record::RankInfo& rank) {
    for (const record::Step& step : rank.steps) writer_.AppendStep(rank.rank, step);
    for (const record::StepWindow& window : rank.windows) writer_.AppendWindow(rank.rank, window);
    writer_.PutRank(rank);
  }

  void SayThatNothingTrains(const Profile& profile) {
    size_t samples = 0;
    for (const Thread& thread : profile.threads) samples += thread.samples.size();
    writer_.AppendMessage(
        {MonotonicNs(), record::Severity::kWarning, "py-spy",
         fmt::format("{} samples of {} threads of process {} and its children, and none within a "
                     "forward or backward pass or an optimizer's step of PyTorch",
                     samples, profile.threads.size(), options_.target.pid)});
  }

  const AttachOptions& options_;
  record::RunWriter writer_;
  WriterSink sink_;
  probe::ProbeSet probes_;
  Family family_;
  Sources sources_;
  int64_t ticks_ = 0;
};

}  // namespace

Result<std::string> RecordAttached(const AttachOptions& options) {
  const auto directory = collect::MakeRunsDirectory(options.directory);
  if (!directory) return directory.error();
  const std::string name = collect::NameOf(options.target.command);
  const auto place = collect::PlaceForNewRun(*directory, collect::NameWithTime(name));
  if (!place) return place.error();
  auto writer = record::RunWriter::Open(
      place->path,
      {place->run_id,
       name,
       options.keep_command_lines ? MaskSecrets(options.target.command) : std::vector<std::string>(),
       options.target.directory,
       {}},
      MonotonicNs(), WallNs());
  auto recorded = writer ? AttachedRun(options, std::move(*writer)).Record() : Result<void>(writer.error());
  if (!recorded) {
    collect::RemoveRunFile(place->path);
    return recorded.error();
  }
  return place->path;
}

}  // namespace fullbore::stacks
