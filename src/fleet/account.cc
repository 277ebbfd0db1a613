#include "fleet/account.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <tuple>

#include "base/text.h"
#include "explain/diagnose/diagnose.h"
#include "record/limits.h"

namespace fullbore::fleet {

namespace {

using diagnose::Diagnosis;
using diagnose::Finding;

// Findings that name what the device waits for, and the share of the step that they are about.
struct Waits {
  std::string_view finding, share;
};
constexpr std::array kWaits = {
    Waits{"input-bound", "data_wait"},        Waits{"worker-overcommit", "data_wait"},
    Waits{"straggler", "comm_exposed"},       Waits{"comm-bound", "comm_exposed"},
    Waits{"launch-bound", "launch"},          Waits{"sync-bound", "sync"},
    Waits{"copy-bound", "copy_exposed"},      Waits{"recompilation", "host_other"},
    Waits{"host-other", "host_other"},        Waits{"instrumentation", "host_other"},
    Waits{"uneven-last-batch", "host_other"},
};

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

// The steady state of one stage, divided among what was waited for and the rest. Each rank waits by its own shares: of
// what a finding is about, the part that the finding says, of the rank that has most of it.
class SteadyState {
 public:
  SteadyState(const Diagnosis& diagnosis, int64_t device_ns) : device_ns_(device_ns) {
    for (const diagnose::RankShares& rank : diagnosis.ranks) left_.push_back(rank.shares);
    for (const Finding& finding : diagnosis.findings) Take(finding);
  }

  std::vector<Part> Parts() const {
    std::vector<Part> parts = waste_;
    int64_t work_ns = device_ns_;
    for (const Part& part : waste_) work_ns -= part.device_ns;
    parts.push_back({Kind::kWork, "", work_ns});
    return parts;
  }

 private:
  void Take(const Finding& finding) {
    const auto waits = std::ranges::find(kWaits, finding.id, &Waits::finding);
    if (waits == kWaits.end() || finding.of_others || left_.empty()) return;
    const std::string share(waits->share);
    double most = 0;
    for (const auto& shares : left_) {
      if (const auto found = shares.find(share); found != shares.end()) most = std::max(most, found->second);
    }
    if (most <= 0) return;
    const double part = std::clamp(finding.share / most, 0.0, 1.0);
    double taken = 0;  // of the mean rank's step
    for (auto& shares : left_) {
      const auto found = shares.find(share);
      if (found == shares.end()) continue;
      taken += part * found->second / static_cast<double>(left_.size());
      found->second *= 1 - part;
    }
    const auto ns = static_cast<int64_t>(taken * static_cast<double>(device_ns_));
    if (ns > 0) waste_.push_back({Kind::kWaste, finding.id, ns});
  }

  std::vector<std::map<std::string, double>> left_;  // of each rank
  int64_t device_ns_;
  std::vector<Part> waste_;
};

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

void AddStage(const record::Stage& stage, const Diagnosis& diagnosis, int64_t devices, RunAccount& account) {
  const int64_t all_ns = DeviceTime(stage.begin_ns, stage.end_ns - RecordedElsewhereNs(stage), devices);
  account.given_ns += all_ns;
  const auto add = [&](Kind kind, const std::string& cause, int64_t device_ns) {
    if (device_ns > 0) AddUp(account.parts, {kind, cause, device_ns});
  };
  if (diagnosis.steps == 0 || !diagnosis.fitness.CanBeJudged()) {
    const bool idle = Has(diagnosis, "idle-device");
    return add(idle ? Kind::kWaste : Kind::kNotJudged, idle ? "idle-device" : "", all_ns);
  }
  const int64_t begin_ns = std::clamp(diagnosis.begin_ns, stage.begin_ns, stage.end_ns);
  const int64_t end_ns = std::clamp(diagnosis.end_ns, begin_ns, stage.end_ns);
  const int64_t start_ns = std::min(all_ns, DeviceTime(stage.begin_ns, begin_ns, devices));
  const int64_t steady_ns = std::min(all_ns - start_ns, DeviceTime(begin_ns, end_ns, devices));
  add(Kind::kStart, "", start_ns);
  for (const Part& part : SteadyState(diagnosis, steady_ns).Parts())
    add(part.kind, part.cause, part.device_ns);
  const bool hangs = Has(diagnosis, "hang");
  add(hangs ? Kind::kWaste : Kind::kEnd, hangs ? "hang" : "", all_ns - start_ns - steady_ns);
  for (const Finding& finding : diagnosis.findings) {
    if (finding.speedup.expected <= 1 || finding.open) continue;
    account.advice.push_back({finding.id, finding.cause, finding.title, finding.change, finding.speedup.low,
                              finding.speedup.expected, finding.speedup.high, steady_ns});
  }
}

}  // namespace

const char* Name(Kind kind) {
  switch (kind) {
    case Kind::kWork:
      return "work";
    case Kind::kWaste:
      return "waste";
    case Kind::kStart:
      return "start";
    case Kind::kEnd:
      return "end";
    case Kind::kNotJudged:
      return "not judged";
    case Kind::kExempt:
      return "exempt";
  }
  return "not judged";
}

void AddUp(std::vector<Part>& parts, const Part& part) {
  const auto key = [](const Part& each) { return std::tie(each.kind, each.cause); };
  const auto at = std::ranges::lower_bound(parts, key(part), {}, key);
  if (at != parts.end() && key(*at) == key(part))
    at->device_ns =
        __builtin_add_overflow(at->device_ns, part.device_ns, &at->device_ns) ? INT64_MAX : at->device_ns;
  else
    parts.insert(at, part);
}

RunAccount AccountOf(const record::Recording& recording) {
  RunAccount account;
  account.id = recording.id;
  account.path = recording.path;
  account.user = Fact(recording, "user");
  account.job = Fact(recording, "job_id");
  account.account = Fact(recording, "job_account");
  account.partition = Fact(recording, "job_partition");
  if (recording.stages.front().nodes.size() < 2) account.node = Fact(recording, "hostname");
  account.device = DeviceOf(recording);
  account.begin_unix_ns = recording.stages.front().begin_ns + recording.wall_offset_ns;
  account.ended = recording.stages.back().state == record::StageState::kEnded;
  const record::Stage* judged = diagnose::JudgedStage(recording, "");
  const auto add = [&](const record::Stage& stage) {
    const Diagnosis diagnosis = diagnose::Diagnose(recording, stage.name);
    AddStage(stage, diagnosis, DevicesOf(recording, stage), account);
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
