#include "agent/processes.h"

#include <fmt/format.h>
#include <pwd.h>
#include <sys/types.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "base/clock.h"
#include "base/fd.h"
#include "base/file_head.h"
#include "base/text.h"
#include "measure/probe/text_file.h"

namespace fullbore::agent {

namespace {

// A process says itself how long these are: of what somebody else's claims, the beginning has to do.
constexpr size_t kTitleBytes = 4 << 10, kEnvironmentBytes = 256 << 10;

constexpr int64_t kYoungNs = 30 * kNsPerSecond;  // a scheduler has moved it to its group by then
constexpr uint64_t kTurns = 12;                  // of scans in which every old process is read again
// Of a group: its first processes may not have the variables, and one that was just forked has still its parent's.
constexpr int kEnvironments = 64;
constexpr int64_t kRememberNs = 3600 * kNsPerSecond;

// A container with numbers of its own for its processes: NVML's and the scheduler's are others. The kernel gives the first
// such namespace this number (include/linux/proc_ns.h); a root of files has none.
bool HasNumbersOfItsOwn(const std::string& root) {
  std::error_code error;
  const auto space = std::filesystem::read_symlink(root + "/proc/self/ns/pid", error);
  return !error && space != "pid:[4026531836]";
}

// Who runs it, of "Uid:\t1000\t1000\t1000\t1000" in its status.
std::optional<uint32_t> UidOf(const std::string& process_directory) {
  const Result<std::string> status = ReadFile(process_directory + "/status");
  if (!status) return std::nullopt;
  const auto uid = probe::CountAfter(*status, "Uid:");
  return uid && *uid <= UINT32_MAX ? std::optional(static_cast<uint32_t>(*uid)) : std::nullopt;
}

// "default_train-0_1f0c42a6-...", as the kubelet names a pod's directory of logs: no part has an underscore.
std::optional<std::pair<std::string, Pod>> PodIn(const std::string& directory) {
  const std::vector<std::string_view> parts = Split(directory, '_');
  if (parts.size() != 3) return std::nullopt;
  return std::pair(std::string(parts[2]), Pod{std::string(parts[1]), std::string(parts[0])});
}

// The path in the old hierarchy of devices, up to the job.
std::string DevicesGroup(std::string_view cgroup_text) {
  for (const std::string_view line : Split(cgroup_text, '\n')) {
    const size_t controllers = line.find(":devices:");
    if (controllers == std::string_view::npos) continue;
    const std::string_view path = line.substr(controllers + 9);
    const size_t job = path.find("/job_");
    return job == std::string_view::npos ? "" : std::string(path.substr(0, path.find('/', job + 1)));
  }
  return "";
}

}  // namespace

Processes::Processes(std::string root, NameOfUser name_of_user)
    : root_(std::move(root)), name_of_user_(std::move(name_of_user)), proc_(nullptr, closedir) {}

Processes::~Processes() = default;

std::string Processes::DirectoryOf(int64_t pid) const { return fmt::format("{}/proc/{}", root_, pid); }

bool Processes::IsDue(const Known& known, int64_t pid, int64_t now_ns) const {
  return now_ns - known.first_ns < kYoungNs || static_cast<uint64_t>(pid) % kTurns == scans_ % kTurns;
}

void Processes::Scan(int64_t now_ns) {
  if (proc_)
    rewinddir(proc_.get());
  else
    proc_.reset(opendir((root_ + "/proc").c_str()));
  if (!proc_) return;
  ++scans_;
  while (const dirent* entry = readdir(proc_.get())) {
    const auto pid = ParseInt(entry->d_name);
    if (!pid || *pid <= 0) continue;
    Known& known = known_[*pid];
    const bool is_new = known.inode != entry->d_ino;
    if (is_new) known = {entry->d_ino, scans_, now_ns, {}, {}};
    known.scan = scans_;
    if (is_new || IsDue(known, *pid, now_ns)) Read(*pid, known);
  }
  std::erase_if(known_, [this](const auto& each) { return each.second.scan != scans_; });
  Count();
  sight_.processes = ReadFile(DirectoryOf(1) + "/cgroup").ok() && !HasNumbersOfItsOwn(root_);
}

// What ends meanwhile stays a process of nobody, and is gone at the next scan.
void Processes::Read(int64_t pid, Known& known) {
  known.in.reset();
  known.uid.reset();
  const Result<std::string> text = ReadFile(DirectoryOf(pid) + "/cgroup");
  if (!text) return;
  known.in = MembershipOf(*text);
  if (known.in->holder.kind >= Kind::kContainer) Learn(groups_[known.in->holder], pid, *known.in, *text);
}

void Processes::Count() {
  for (auto& [holder, group] : groups_) group.processes = 0;
  led_.clear();
  bool has_new_pod = false;
  for (const auto& [pid, known] : known_) {
    if (!known.in || known.in->holder.kind < Kind::kContainer) continue;
    const Holder& holder = known.in->holder;
    ++groups_[holder].processes;
    has_new_pod |= !holder.pod_uid.empty() && !pods_.contains(holder.pod_uid);
    if (known.in->step_daemon) led_.emplace(holder.job, known.in->step);
  }
  std::erase_if(groups_, [](const auto& each) { return each.second.processes == 0; });
  if (has_new_pod) ReadPods();
}

void Processes::Learn(Group& group, int64_t pid, const Membership& in, const std::string& cgroup_text) {
  if (in.step_daemon) {
    if (!IsSluid(in.holder.job) || !group.job_number.empty()) return;
    const Result<std::string> title = ReadHead(DirectoryOf(pid) + "/cmdline", kTitleBytes);
    if (title) group.job_number = JobInTitle(*title);
    return;
  }
  if (group.user.empty()) LearnUser(group, pid, in);
  if (group.allocation.empty() && in.step != "extern") LearnAllocation(group, pid, in, cgroup_text);
}

// What waits in a job's step "extern" is the scheduler's own, and root's.
void Processes::LearnUser(Group& group, int64_t pid, const Membership& in) {
  const auto uid = UidOf(DirectoryOf(pid));
  if (uid && (*uid != 0 || in.step != "extern")) group.user = name_of_user_(*uid);
}

void Processes::LearnAllocation(Group& group, int64_t pid, const Membership& in,
                                const std::string& cgroup_text) {
  if (const std::string path = DevicesGroup(cgroup_text); !path.empty()) {
    const Result<std::string> list = ReadFile(root_ + "/sys/fs/cgroup/devices" + path + "/devices.list");
    if (list) group.allocation = AllocationInDevicesList(*list);
  }
  if (!group.allocation.empty() || in.of_user || group.environments++ >= kEnvironments) return;
  const Result<std::string> environment = ReadHead(DirectoryOf(pid) + "/environ", kEnvironmentBytes);
  if (environment) group.allocation = AllocationInEnvironment(*environment);
  if (environment || environment.error().code == ErrorCode::kPermission)
    sight_.environments = environment.ok();
}

void Processes::ReadPods() {
  pods_.clear();  // of weeks they would be many
  std::error_code error;
  for (std::filesystem::directory_iterator at(root_ + "/var/log/pods", error), end; !error && at != end;
       at.increment(error)) {
    if (auto pod = PodIn(at->path().filename().string())) pods_.insert(std::move(*pod));
  }
}

Pod Processes::PodOf(const std::string& uid) const {
  const auto found = pods_.find(uid);
  return found == pods_.end() ? Pod{} : found->second;
}

std::optional<Process> Processes::Find(int64_t pid) {
  Known& known = known_[pid];
  const bool younger_than_scan = known.inode == 0;
  if (younger_than_scan) Read(pid, known);
  if (!known.in) return std::nullopt;
  std::optional<uint32_t>& uid = known.uid;
  if (!uid) uid = UidOf(DirectoryOf(pid));
  Process process = {*known.in, uid, false};
  Holder& holder = process.in.holder;
  if (holder.kind < Kind::kContainer && !holder.uid) holder.uid = uid;
  const bool could_see = !younger_than_scan && process.in.unified && !process.in.step.empty() &&
                         sight_.processes.value_or(false);
  process.outlived = process.in.removed || (could_see && !led_.contains({holder.job, process.in.step}));
  return process;
}

NameOfUser UserNames() {
  struct Name {
    std::string text;
    int64_t asked_ns = 0;
  };
  return [names = std::map<uint32_t, Name>()](uint32_t uid) mutable {
    const int64_t now_ns = MonotonicNs();
    Name& name = names[uid];
    if (!name.text.empty() && now_ns - name.asked_ns < kRememberNs) return name.text;
    std::array<char, 4096> room{};
    passwd entry{};
    passwd* found = nullptr;
    (void)getpwuid_r(uid, &entry, room.data(), room.size(), &found);
    name = {found ? found->pw_name : std::to_string(uid), now_ns};
    return name.text;
  };
}

}  // namespace fullbore::agent
