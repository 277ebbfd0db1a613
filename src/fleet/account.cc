#include "fleet/account.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/clock.h"
#include "base/text.h"
#include "explain/diagnose/diagnose.h"
#include "fleet/steady_state.h"
#include "record/json_text.h"
#include "record/limits.h"

namespace fullbore::fleet {

namespace {

using diagnose::Diagnosis;
using diagnose::Finding;
using record::HostOther;

constexpr int64_t kLastUnixS = record::kMaxWallOffsetNs / kNsPerSecond;

std::string Fact(const record::Recording& recording, const char* name) {
  const auto found = recording.machine.find(name);
  return found == recording.machine.end() ? "" : found->second;
}

// Its ranks, or what the job was given.
int64_t DevicesOf(const record::Recording& recording, const record::Stage& stage) {
  constexpr int64_t kMost = 4096;
  const auto ranks = static_cast<int64_t>(stage.ranks.size());
  return ranks > 0 ? ranks : std::clamp<int64_t>(ParseInt(Fact(recording, "job_gpus")).value_or(1), 1, kMost);
}

// Bounded, so that no file makes it overflow.
int64_t DeviceTime(int64_t begin_ns, int64_t end_ns, int64_t devices) {
  return std::clamp<int64_t>(end_ns - begin_ns, 0, record::kMaxNs / devices) * devices;
}

std::string DeviceOf(const record::Recording& recording) {
  for (const record::Stage& stage : recording.stages) {
    for (const record::RankInfo& rank : stage.ranks) {
      if (rank.device == "cpu") return "cpu";
    }
  }
  const std::string gpu = Fact(recording, "gpu0");
  return gpu.empty() ? "cpu" : gpu;
}

bool Has(const Diagnosis& diagnosis, std::string_view id) {
  return std::ranges::any_of(diagnosis.findings, [&](const Finding& finding) { return finding.id == id; });
}

// How long runs within this one recorded parts of it (steps of the job whose script this is): their own files count that.
int64_t RecordedElsewhereNs(const record::Stage& stage) {
  if (!stage.ranks.empty()) return 0;
  std::vector<std::pair<int64_t, int64_t>> times;
  for (const record::Process& process : stage.processes) {
    if (process.role == record::kRecorderRole)
      times.emplace_back(process.begin_ns, process.end_ns > 0 ? process.end_ns : stage.end_ns);
  }
  std::ranges::sort(times);
  int64_t all_ns = 0, counted_until_ns = stage.begin_ns;
  for (const auto& [begin_ns, end_ns] : times) {
    const int64_t from_ns = std::max(begin_ns, counted_until_ns), until_ns = std::min(end_ns, stage.end_ns);
    all_ns += std::max<int64_t>(0, until_ns - from_ns);
    counted_until_ns = std::max(counted_until_ns, until_ns);
  }
  return all_ns;
}

template <typename Steps>
int64_t NsOf(const Steps& of, HostOther part) {
  return of.host_other_ns[static_cast<size_t>(part)];
}

// The end of the rank's last checkpoint: as the recorder saw it, else of the step, or the window, that it lies in.
std::optional<int64_t> LastCheckpoint(const record::RankInfo& rank) {
  std::optional<int64_t> last;
  const auto fact = rank.facts.find("checkpoints");
  if (fact != rank.facts.end() && rank.node == 0) {  // other machines' clocks are not ours
    const double end_ns = record::NumberIn(record::ParseJson(fact->second), "last_end_ns");
    if (end_ns > 0 && end_ns < static_cast<double>(record::kMaxNs)) last = static_cast<int64_t>(end_ns);
  }
  const auto see = [&](int64_t begin_ns, int64_t end_ns) {
    if (!last || begin_ns > *last) last = end_ns;
  };
  for (const record::Step& step : rank.steps) {
    if (NsOf(step, HostOther::kCheckpoint) > 0) see(step.end_ns - step.wall_ns, step.end_ns);
  }
  for (const record::StepWindow& window : rank.windows) {
    if (NsOf(window, HostOther::kCheckpoint) > 0) see(window.begin_ns, window.end_ns);
  }
  return last;
}

std::optional<int64_t> LastCheckpoint(const record::Stage& stage) {
  std::optional<int64_t> last;
  for (const record::RankInfo& rank : stage.ranks) {
    if (const auto of_rank = LastCheckpoint(rank)) last = std::max(last.value_or(*of_rank), *of_rank);
  }
  return last;
}

bool EndsBadly(const record::Stage& stage, const Ending& ending) {
  const bool open = stage.state == record::StageState::kRunning;
  const bool lost_a_machine = std::ranges::any_of(stage.nodes, &record::Node::cut_off);
  return stage.exit_status.value_or(0) != 0 || lost_a_machine || (open && ending.cut_off);
}

// One stage, cut along its time: before its first step, until its steady state, in it, and after it.
class StageAccount {
 public:
  StageAccount(const record::Stage& stage, const Diagnosis& diagnosis, int64_t devices, RunAccount& account)
      : stage_(stage), diagnosis_(diagnosis), devices_(devices), account_(account) {
    left_ns_ = std::min(DeviceTime(stage.begin_ns, stage.end_ns - RecordedElsewhereNs(stage), devices),
                        record::kMaxNs - account.given_ns);
    account.given_ns += left_ns_;
    steady_.begin_ns = std::clamp(diagnosis.begin_ns, stage.begin_ns, stage.end_ns);
    steady_.end_ns = std::clamp(diagnosis.end_ns, steady_.begin_ns, stage.end_ns);
  }

  void Add(const Ending& ending) {
    if (diagnosis_.steps == 0 || !diagnosis_.fitness.CanBeJudged()) {
      const bool idle = Has(diagnosis_, "idle-device");
      return Put(idle ? Kind::kWaste : Kind::kNotJudged, idle ? "idle-device" : "", left_ns_);
    }
    AddStart();
    AddSteady(ending);
    const bool hangs = Has(diagnosis_, "hang");
    Put(hangs ? Kind::kWaste : Kind::kEnd, hangs ? "hang" : "", left_ns_);
  }

 private:
  int64_t TimeOf(int64_t begin_ns, int64_t end_ns) const {
    return std::min(left_ns_, DeviceTime(begin_ns, end_ns, devices_));
  }

  void Put(Kind kind, const std::string& cause, int64_t device_ns) {
    left_ns_ -= device_ns;
    if (device_ns > 0) AddUp(account_.parts, {kind, cause, device_ns});
  }

  // What the first steps show of compilers is told apart from the rest of the warm-up.
  void AddStart() {
    int64_t first_ns = steady_.begin_ns, compile_ns = 0;
    for (const record::RankInfo& rank : stage_.ranks) {
      for (const record::Step& step : rank.steps) {
        const int64_t begin_ns = step.end_ns - step.wall_ns;
        if (begin_ns >= steady_.begin_ns) break;
        first_ns = std::min(first_ns, std::max(begin_ns, stage_.begin_ns));
        compile_ns =
            std::min(record::kMaxNs, compile_ns + std::max<int64_t>(0, NsOf(step, HostOther::kCompilation)));
      }
    }
    const int64_t start_ns = TimeOf(stage_.begin_ns, first_ns);
    const int64_t warm_up_ns = TimeOf(stage_.begin_ns, steady_.begin_ns) - start_ns;
    compile_ns = std::clamp<int64_t>(compile_ns, 0, warm_up_ns);
    Put(Kind::kStart, "", start_ns);
    Put(Kind::kCompile, "", compile_ns);
    Put(Kind::kWarmUp, "", warm_up_ns - compile_ns);
  }

  void AddSteady(const Ending& ending) {
    const auto saved_ns = LastCheckpoint(stage_);
    account_.saves = account_.saves || saved_ns;
    Stretch kept = steady_;
    if (EndsBadly(stage_, ending)) {
      if (saved_ns || ending.saves)
        kept.end_ns = std::clamp(saved_ns.value_or(steady_.begin_ns), steady_.begin_ns, steady_.end_ns);
      else
        account_.lost_unknown = true;
    }
    const int64_t steady_ns = TimeOf(steady_.begin_ns, steady_.end_ns);
    const int64_t kept_ns = std::min(steady_ns, DeviceTime(kept.begin_ns, kept.end_ns, devices_));
    for (const Part& part : Divide(stage_, diagnosis_, kept, kept_ns))
      Put(part.kind, part.cause, part.device_ns);
    Put(Kind::kLost, "", steady_ns - kept_ns);
    Advise(steady_ns);
  }

  void Advise(int64_t steady_ns) {
    for (const Finding& finding : diagnosis_.findings) {
      if (finding.speedup.expected <= 1 || finding.open) continue;
      account_.advice.push_back({finding.id, finding.cause, finding.title, finding.change,
                                 finding.speedup.low, finding.speedup.expected, finding.speedup.high,
                                 steady_ns});
    }
  }

  const record::Stage& stage_;
  const Diagnosis& diagnosis_;
  int64_t devices_;
  RunAccount& account_;
  int64_t left_ns_ = 0;  // of what was given
  Stretch steady_;
};

void AddMachines(const record::Recording& recording, RunAccount& account) {
  const std::vector<record::Node>& nodes = recording.stages.front().nodes;
  const std::string hostname = Fact(recording, "hostname");
  if (nodes.size() < 2) account.node = hostname;
  for (const record::Node& node : nodes) account.nodes.push_back(node.name);
  if (nodes.empty() && !hostname.empty()) account.nodes = {hostname};
}

void AddEnd(const record::Recording& recording, const Ending& ending, RunAccount& account) {
  const record::Stage& last = recording.stages.back();
  account.ended = last.state == record::StageState::kEnded;
  account.cut_off = !account.ended && ending.cut_off;
  account.exit_status = last.exit_status;
  account.end_unix_ns = std::max(account.begin_unix_ns, last.end_ns + recording.wall_offset_ns);
}

}  // namespace

RunAccount AccountOf(const record::Recording& recording, const Ending& ending) {
  RunAccount account;
  account.id = recording.id;
  account.path = recording.path;
  account.user = Fact(recording, "user");
  account.job = Fact(recording, "job_id");
  account.job_name = Fact(recording, "job_name");
  account.account = Fact(recording, "job_account");
  account.partition = Fact(recording, "job_partition");
  account.job_start_unix_s =
      std::clamp<int64_t>(ParseInt(Fact(recording, "job_start_unix_s")).value_or(0), 0, kLastUnixS);
  account.device = DeviceOf(recording);
  account.begin_unix_ns = recording.stages.front().begin_ns + recording.wall_offset_ns;
  account.use = UseOf(recording);
  AddMachines(recording, account);
  AddEnd(recording, ending, account);
  const record::Stage* judged = diagnose::JudgedStage(recording, "");
  const auto add = [&](const record::Stage& stage) {
    const Diagnosis diagnosis = diagnose::Diagnose(recording, stage.name);
    StageAccount(stage, diagnosis, DevicesOf(recording, stage), account).Add(ending);
    return diagnosis;
  };
  const Diagnosis first = add(*judged);  // so that its advice comes first
  account.devices = DevicesOf(recording, *judged);
  account.directory = judged->directory;
  for (const std::string& word : judged->command)
    account.command += (account.command.empty() ? "" : " ") + ShellQuote(word);
  account.verdict = first.findings.empty() ? first.fitness.Refusal() : first.findings.front().title;
  if (first.fitness.CanBeJudged()) account.steps_per_s = first.steps_per_s;
  for (const record::Stage& stage : recording.stages) {
    if (&stage != judged) add(stage);
  }
  return account;
}

}  // namespace fullbore::fleet
