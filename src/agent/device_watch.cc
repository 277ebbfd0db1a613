#include "agent/device_watch.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/clock.h"

namespace fullbore::agent {

namespace nvml = probe::nvml;
using record::Metric;

namespace {

constexpr int64_t kLooksToUsers = 5;
constexpr int64_t kOpenAgainNs = 60 * kNsPerSecond;  // a driver may be loaded later
// Less is a kernel or two in a second: a driver that looks after itself, not a job.
constexpr double kWorksFrom = 0.005;
// A GPU that nobody uses shows some hundred MB where the driver cannot tell what it keeps for itself.
constexpr double kHeldMemoryBytes = 1 << 30;

// An instance's processes are its own: the GPU that is divided into such has none.
bool IsDivided(const nvml::Gpu& gpu, const std::vector<nvml::Gpu>& all) {
  return std::ranges::any_of(all,
                             [&](const nvml::Gpu& each) { return each.parent && each.parent == gpu.device; });
}

}  // namespace

// The last reading of each series, and what happened between two looks.
class DeviceWatch::Readings : public probe::Sink {
 public:
  explicit Readings(std::function<void(const std::string&)> say) : say_(std::move(say)) {}

  void Read(const record::SeriesKey& key, int64_t t_ns, double value) override {
    if (IsOf(key, Metric::kGpuXid)) {
      ++xids[{key.labels.at("gpu"), std::llround(value)}];
      return;
    }
    if (IsOf(key, Metric::kGpuUtilization) || IsOf(key, Metric::kGpuSmActive)) {
      std::optional<bool>& here = worked_[key.labels];
      here = here.value_or(false) || value >= kWorksFrom;
    }
    last_[key] = {t_ns, value};
  }
  void Say(record::Severity, std::string_view source, std::string_view text) override {
    std::string line = std::string(source) + ": " + std::string(text);
    if (said_.insert(line).second) say_(line);
  }
  void SetMachineFact(std::string_view key, std::string_view value) override {
    facts[std::string(key)] = value;
  }

  std::optional<bool> TakeWorked(const record::Labels& labels) {
    return std::exchange(worked_[labels], std::nullopt);
  }
  std::optional<double> Last(Metric metric, const record::Labels& labels) const {
    const auto found = last_.find(record::KeyOf(metric, labels));
    return found == last_.end() ? std::nullopt : std::optional(found->second.second);
  }
  // What was not read in the last looks is not known.
  std::map<record::SeriesKey, double> Fresh(int64_t now_ns) const {
    std::map<record::SeriesKey, double> fresh;
    for (const auto& [key, reading] : last_) {
      if (now_ns - reading.first <= 2 * kLooksToUsers * kNsPerSecond) fresh[key] = reading.second;
    }
    return fresh;
  }

  std::map<std::string, std::string> facts;
  std::map<std::pair<std::string, int64_t>, int64_t> xids;

 private:
  const std::function<void(const std::string&)> say_;
  std::map<record::SeriesKey, std::pair<int64_t, double>> last_;
  std::map<record::Labels, std::optional<bool>> worked_;
  std::set<std::string> said_;
};

DeviceWatch::DeviceWatch(const std::string& root, NameOfUser name_of_user,
                         std::function<void(const std::string&)> say)
    : processes_(root, std::move(name_of_user)), readings_(std::make_unique<Readings>(std::move(say))) {}

DeviceWatch::~DeviceWatch() = default;

bool DeviceWatch::Open(int64_t now_ns) {
  if (session_ && session_->Start(*readings_)) return true;
  if (opened_ns_ && now_ns - *opened_ns_ < kOpenAgainNs) return false;
  opened_ns_ = now_ns;
  watched_.clear();
  slow_.reset();
  fast_.reset();
  session_ = std::make_shared<nvml::Session>();
  if (!session_->Start(*readings_)) return false;
  fast_ = std::make_unique<nvml::FastProbe>(session_);
  slow_ = std::make_unique<nvml::SlowProbe>(session_, [](int64_t) { return false; });
  for (size_t i = 0; i < session_->gpus().size(); ++i)
    watched_.push_back({nvml::DeviceUsers(*session_), {}, false});
  return true;
}

void DeviceWatch::Look(int64_t now_ns) {
  has_nvml_ = Open(now_ns);
  const bool with_users = looks_++ % kLooksToUsers == 0;
  if (has_nvml_) fast_->Sample(now_ns, *readings_);
  if (has_nvml_ && with_users) {
    slow_->Sample(now_ns, *readings_);
    processes_.Scan(now_ns);
    LookAtUsers(now_ns);
  }
  looked_ns_ = now_ns;
}

void DeviceWatch::LookAtUsers(int64_t now_ns) {
  unseen_ = 0;
  const std::vector<nvml::Gpu>& gpus = session_->gpus();
  for (size_t i = 0; i < gpus.size(); ++i) {
    if (IsDivided(gpus[i], gpus)) continue;
    Device& device = devices_[gpus[i].labels];
    const auto uses = UsesOf(i, device);
    watched_[i].users_known = uses.has_value();
    device.Update(now_ns, uses);
  }
}

struct DeviceWatch::Seen {
  std::vector<Process> processes;
  std::map<Holder, Use> uses;
  std::map<Holder, std::set<int64_t>> pids;
};

DeviceWatch::Seen DeviceWatch::Gather(const std::vector<nvml::DeviceUser>& users,
                                      std::optional<bool> worked) {
  Seen seen;
  for (const nvml::DeviceUser& user : users) {
    const std::optional<Process> process = processes_.Find(user.pid);
    if (!process) ++unseen_;
    seen.processes.push_back(process.value_or(Process{}));
    const Holder& holder = seen.processes.back().in.holder;
    Use& use = seen.uses[holder];
    use.holder = holder;
    use.worked = worked;
    ++use.processes;
    if (user.memory_bytes) use.memory_bytes = use.memory_bytes.value_or(0) + *user.memory_bytes;
    seen.pids[holder].insert(user.pid);
  }
  return seen;
}

std::optional<std::vector<Use>> DeviceWatch::UsesOf(size_t place, const Device& before) {
  nvml::Gpu& gpu = session_->gpus()[place];
  Watched& watched = watched_[place];
  watched.strays.clear();
  const std::optional<bool> worked = readings_->TakeWorked(gpu.labels);
  const auto users = watched.users.Of(gpu, *readings_);
  if (!users) return std::nullopt;
  Seen seen = Gather(*users, worked);
  // Of those who share it, one may work while another idles.
  const auto workers =
      seen.uses.size() > 1 ? watched.users.WorkedSince(gpu, *readings_) : std::optional<std::set<int64_t>>();
  for (auto& [holder, use] : seen.uses) {
    const auto is_worker = [&](int64_t pid) { return workers->contains(pid); };
    if (workers) use.worked = std::ranges::any_of(seen.pids[holder], is_worker);
  }
  // Work of which no process is listed is of those who hold it without one: not every NVML lists them all.
  const bool unlisted = users->empty() && worked.value_or(false);
  AddIdleHolders(gpu, before, unlisted ? worked : std::nullopt, seen.uses);
  watched.strays = StraysIn(seen);
  std::vector<Use> uses;
  for (auto& [holder, use] : seen.uses) uses.push_back(std::move(use));
  return uses;
}

std::vector<Strays> DeviceWatch::StraysIn(const Seen& seen) const {
  const bool of_a_scheduler =
      std::ranges::any_of(seen.uses, [](const auto& each) { return each.first.kind >= Kind::kPod; });
  std::map<std::pair<std::string, const char*>, int64_t> counts;  // by user and reason
  for (const Process& process : seen.processes) {
    const bool of_nobody = of_a_scheduler && process.in.holder.kind < Kind::kContainer;
    if (!process.uid || !(process.outlived || of_nobody)) continue;
    ++counts[{processes_.UserOf(*process.uid), process.outlived ? "step_over" : "no_job"}];
  }
  std::vector<Strays> strays;
  for (const auto& [by, count] : counts) strays.push_back({by.first, by.second, count});
  return strays;
}

// Who was given the device or has used it before, and is still on this node, holds it without a process. So does nobody
// known, where memory is taken and nobody listed.
void DeviceWatch::AddIdleHolders(const nvml::Gpu& gpu, const Device& before, std::optional<bool> worked,
                                 std::map<Holder, Use>& uses) const {
  const Named named = {gpu.index, gpu.minor_number, gpu.uuid, gpu.parent != nullptr};
  for (const auto& [holder, group] : processes_.groups()) {
    if (uses.contains(holder)) continue;
    if (Includes(group.allocation, named) || before.holds().contains(holder))
      uses[holder] = {holder, 0, std::nullopt, worked};
  }
  const auto memory = readings_->Last(Metric::kGpuMemoryUsed, gpu.labels);
  if (!uses.empty() || memory.value_or(0) < kHeldMemoryBytes) return;
  uses[Holder{}] = {Holder{}, 0, static_cast<uint64_t>(*memory), worked};
}

Labels DeviceWatch::LabelsOf(const Holder& holder) const {
  const auto found = processes_.groups().find(holder);
  const Group group = found == processes_.groups().end() ? Group{} : found->second;
  const Pod pod = processes_.PodOf(holder.pod_uid);
  const std::string user = holder.uid ? processes_.UserOf(*holder.uid) : group.user;
  const std::string& job = group.job_number.empty() ? holder.job : group.job_number;
  Labels labels = {{"kind", Name(holder.kind)}};
  const std::pair<const char*, const std::string&> all[] = {{"user", user},
                                                            {"job_id", job},
                                                            {"namespace", pod.namespace_name},
                                                            {"pod", pod.name},
                                                            {"pod_uid", holder.pod_uid},
                                                            {"container", holder.container},
                                                            {"unit", holder.unit}};
  for (const auto& [name, value] : all) {
    if (!value.empty()) labels.emplace_back(name, value);
  }
  return labels;
}

DeviceView DeviceWatch::View() const {
  DeviceView view;
  view.t_ns = looked_ns_;
  view.has_nvml = has_nvml_;
  view.facts = readings_->facts;
  view.readings = readings_->Fresh(looked_ns_);
  view.xids = readings_->xids;
  view.sight = processes_.sight();
  view.unseen_processes = unseen_;
  if (!has_nvml_) return view;
  for (size_t i = 0; i < watched_.size(); ++i) {
    const nvml::Gpu& gpu = session_->gpus()[i];
    ShownDevice& shown = view.devices.emplace_back();
    shown.labels.assign(gpu.labels.begin(), gpu.labels.end());
    shown.name = gpu.name;
    shown.uuid = gpu.uuid;
    shown.lost = gpu.away;
    shown.users_known = watched_[i].users_known;
    shown.strays = watched_[i].strays;
    const auto device = devices_.find(gpu.labels);
    if (device == devices_.end()) continue;
    for (const auto& [holder, hold] : device->second.holds()) shown.holds.push_back({LabelsOf(holder), hold});
  }
  return view;
}

}  // namespace fullbore::agent
