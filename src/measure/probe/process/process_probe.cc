#include "measure/probe/process/process_probe.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <tuple>

#include "base/clock.h"
#include "measure/probe/cgroup/cgroup.h"
#include "measure/probe/text_file.h"

namespace fullbore::probe {

namespace {

constexpr size_t kMaxListed = 1000;
constexpr size_t kNotListed = SIZE_MAX;
constexpr size_t kMaxOpenFiles = 256;  // of the usual limit of 1024 a process
constexpr int kDetailedPerRound = 24;
constexpr int64_t kDelayBudgetNsPerRound = 2 * kNsPerMs;  // rounds are a second apart: 0.2 % of a core
constexpr uint64_t kKiB = 1024;
constexpr double kDelayToSample = 0.2;  // cores: less is the ordinary traffic of a busy machine
constexpr double kCoresOfAPool = 1.2;   // one thread that computes, and another that helps now and then
constexpr int64_t kPssBudgetNsPerRound = kNsPerMs;
constexpr int64_t kPssBudgetCapNs = 5 * kNsPerMs;
// A short run ends before much was read at that rate, and a growth that shows in it would go unseen.
constexpr int64_t kEarlyNs = 60 * kNsPerSecond, kEarlyPssBudgetNsPerRound = 5 * kNsPerMs;
constexpr int64_t kPssIntervalNs = 10 * kNsPerSecond, kShortestPssIntervalNs = 2 * kNsPerSecond;

const double kTicksPerSecond = static_cast<double>(sysconf(_SC_CLK_TCK));
const auto kPageBytes = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));

void AddKnown(std::optional<double>& sum, const std::optional<double>& value) {
  if (value) sum = sum.value_or(0) + *value;
}

}  // namespace

struct ProcessProbe::Group {
  explicit Group(const record::Labels& labels)
      : cpu_key(KeyOf(Metric::kProcessCpu, labels)),
        delay_key(KeyOf(Metric::kProcessRunDelay, labels)),
        spin_key(KeyOf(Metric::kProcessSpin, labels)),
        memory_key(KeyOf(Metric::kProcessMemory, labels)),
        memory_peak_key(KeyOf(Metric::kProcessMemoryPeak, labels)),
        pss_key(KeyOf(Metric::kProcessPss, labels)),
        count_key(KeyOf(Metric::kProcessCount, labels)),
        threads_key(KeyOf(Metric::kProcessThreads, labels)),
        switches_key(KeyOf(Metric::kProcessContextSwitches, labels)),
        read_key(KeyOf(Metric::kProcessIoRead, labels)),
        written_key(KeyOf(Metric::kProcessIoWrite, labels)),
        read_calls_key(KeyOf(Metric::kProcessIoReadCalls, labels)),
        allowed_key(KeyOf(Metric::kProcessCpusAllowed, labels)) {}

  void Clear() {
    count = threads = 0;
    memory_bytes = memory_peak_bytes = pss_bytes = 0;
    memory_peak_known = pss_known = true;
    spin = {};
    cpu_cores = delay_cores = switches = read = written = read_calls = allowed = std::nullopt;
  }

  void Add(const Running& process) {
    ++count;
    threads += process.threads;
    memory_bytes += process.resident_bytes;
    if (process.details.most_bytes)
      memory_peak_bytes += std::max(process.resident_bytes, *process.details.most_bytes);
    else
      memory_peak_known = false;
    if (process.cpu_known) AddKnown(cpu_cores, process.cpu_cores);
    if (process.pss_bytes)
      pss_bytes += *process.pss_bytes;
    else
      pss_known = false;
    AddKnown(delay_cores, process.delay_cores);
    spin.all += process.spin.all;
    spin.in_runtime += process.spin.in_runtime;
    AddKnown(switches, process.details.switches_per_s);
    AddKnown(read, process.details.read_per_s);
    AddKnown(written, process.details.written_per_s);
    AddKnown(read_calls, process.details.read_calls_per_s);
    if (process.details.cpus_allowed)
      allowed = std::min(allowed.value_or(*process.details.cpus_allowed), *process.details.cpus_allowed);
  }

  void Emit(int64_t t_ns, Sink& sink) const {
    sink.Read(count_key, t_ns, static_cast<double>(count));
    if (count == 0) return;
    sink.Read(threads_key, t_ns, static_cast<double>(threads));
    sink.Read(memory_key, t_ns, static_cast<double>(memory_bytes));
    if (memory_peak_known) sink.Read(memory_peak_key, t_ns, static_cast<double>(memory_peak_bytes));
    if (pss_known) sink.Read(pss_key, t_ns, static_cast<double>(pss_bytes));
    const auto emit = [&](const record::SeriesKey& key, const std::optional<double>& value) {
      if (value) sink.Read(key, t_ns, *value);
    };
    emit(cpu_key, cpu_cores);
    emit(delay_key, delay_cores);
    if (spin.all > 0) {
      sink.Read(spin_key, t_ns, static_cast<double>(spin.in_runtime) / static_cast<double>(spin.all));
    }
    emit(switches_key, switches);
    emit(read_key, read);
    emit(written_key, written);
    emit(read_calls_key, read_calls);
    emit(allowed_key, allowed);
  }

  const record::SeriesKey cpu_key, delay_key, spin_key, memory_key, memory_peak_key, pss_key, count_key,
      threads_key, switches_key, read_key, written_key, read_calls_key, allowed_key;
  int64_t count = 0, threads = 0;
  uint64_t memory_bytes = 0, memory_peak_bytes = 0, pss_bytes = 0;
  bool memory_peak_known = true, pss_known = true;
  SpinSamples spin;
  std::optional<double> cpu_cores, delay_cores, switches, read, written, read_calls, allowed;
};

ProcessProbe::ProcessProbe(const Machine& machine)
    : proc_directory_(machine.root + "/proc"),
      keep_command_lines_(machine.keep_command_lines),
      may_sample_(machine.root.empty()),
      tree_(proc_directory_, machine.command_pid, machine.mark) {}

ProcessProbe::~ProcessProbe() = default;

void ProcessProbe::Sample(int64_t t_ns, Sink& sink) {
  if (first_ns_ == 0) first_ns_ = t_ns;
  ReadStats(t_ns);
  for (const int64_t pid : tree_.Scan()) Adopt(pid, t_ns);
  ReadDetails(t_ns);
  ReadDelays(t_ns);
  ReadSpins(sink);
  ReadPss(t_ns);
  EmitSums(t_ns, sink);
  last_ns_ = t_ns;
  if (unlisted_ > 0 && !std::exchange(said_unlisted_, true)) {
    sink.Say(
        record::Severity::kInfo, "process",
        "the command started more than 1000 processes: later ones are included in the sums but not listed");
  }
}

void ProcessProbe::SetRole(int64_t pid, const std::string& role, int rank) {
  const auto found = running_.find(pid);
  if (found == running_.end()) {
    announced_[pid] = {role, rank};
    tree_.Claim(pid);
    return;
  }
  Running& process = found->second;
  process.role = role;
  process.rank = rank;
  if (process.listed == kNotListed) return;
  processes_[process.listed].role = role;
  processes_[process.listed].rank = rank;
}

std::vector<record::Process> ProcessProbe::Processes() const { return processes_; }

int64_t ProcessProbe::OneWithRole(std::string_view role) const {
  const auto at = std::ranges::find_if(running_, [&](const auto& one) { return one.second.role == role; });
  return at == running_.end() ? 0 : at->first;
}

void ProcessProbe::Adopt(int64_t pid, int64_t t_ns) {
  Running process;
  if (running_.size() < kMaxOpenFiles) {
    process.stat.reset(open((DirectoryOf(pid) + "/stat").c_str(), O_RDONLY | O_CLOEXEC));
  }
  const auto stat = ReadStat(pid, process);
  if (!stat) return tree_.Forget(pid);
  process.name = stat->name;
  process.adopted_ns = t_ns;
  process.start_ticks = stat->start_ticks;
  process.threads = stat->threads;
  process.resident_bytes = stat->resident_pages * kPageBytes;
  // If found at the first round, it may have run for long; if found later, it began after the previous round.
  process.last_cpu_ticks = stat->cpu_ticks;
  if (last_ns_ > 0 && t_ns > last_ns_) {
    process.cpu_cores =
        static_cast<double>(stat->cpu_ticks) / kTicksPerSecond * 1e9 / static_cast<double>(t_ns - last_ns_);
    process.cpu_known = true;
  }
  if (const auto announced = announced_.find(pid); announced != announced_.end()) {
    std::tie(process.role, process.rank) = announced->second;
    announced_.erase(announced);
  }
  process.listed = kNotListed;
  if (processes_.size() < kMaxListed) {
    process.listed = processes_.size();
    std::string command = CommandOf(pid, process.name);
    process.command_known = !command.empty();  // in the middle of an exec it has none
    if (command.empty()) command = process.name;
    processes_.push_back({pid, stat->parent_pid, process.role, process.rank, std::move(command), t_ns, 0});
  } else {
    ++unlisted_;
  }
  running_.insert_or_assign(pid, std::move(process));
}

std::string ProcessProbe::CommandOf(int64_t pid, const std::string& name) const {
  return keep_command_lines_ ? ReadCommandLine(DirectoryOf(pid)) : name;
}

std::optional<ProcessStat> ProcessProbe::ReadStat(int64_t pid, const Running& process) {
  UniqueFd opened;
  int fd = process.stat.get();
  if (fd < 0) {
    opened.reset(open((DirectoryOf(pid) + "/stat").c_str(), O_RDONLY | O_CLOEXEC));
    fd = opened.get();
  }
  if (fd < 0) return std::nullopt;
  const ssize_t size = pread(fd, buffer_, sizeof buffer_, 0);
  if (size <= 0) return std::nullopt;  // ESRCH: it has ended
  const auto stat = ParseProcessStat({buffer_, static_cast<size_t>(size)});
  if (stat && process.start_ticks != 0 && stat->start_ticks != process.start_ticks) return std::nullopt;
  return stat;
}

void ProcessProbe::ReadStats(int64_t t_ns) {
  std::vector<int64_t> ended;
  for (auto& [pid, process] : running_) {
    const auto stat = ReadStat(pid, process);
    if (!stat || !stat->alive()) {
      ended.push_back(pid);
      continue;
    }
    if (t_ns > last_ns_ && stat->cpu_ticks >= process.last_cpu_ticks) {
      const auto cpu_s = static_cast<double>(stat->cpu_ticks - process.last_cpu_ticks) / kTicksPerSecond;
      process.cpu_cores = cpu_s * 1e9 / static_cast<double>(t_ns - last_ns_);
      process.cpu_known = true;
    }
    process.last_cpu_ticks = stat->cpu_ticks;
    process.threads = stat->threads;
    process.resident_bytes = stat->resident_pages * kPageBytes;
    if (process.name == stat->name && process.command_known) continue;
    process.name = stat->name;  // it has become another program: its command line is new too
    if (process.listed == kNotListed) continue;
    std::string command = CommandOf(pid, process.name);
    process.command_known = true;
    if (!command.empty()) processes_[process.listed].command = std::move(command);
  }
  for (const int64_t pid : ended) End(pid, t_ns);
}

void ProcessProbe::End(int64_t pid, int64_t t_ns) {
  const auto found = running_.find(pid);
  if (found->second.listed != kNotListed) processes_[found->second.listed].end_ns = t_ns;
  running_.erase(found);
  spins_.Stop(pid);
  tree_.Forget(pid);
}

void ProcessProbe::ReadDetails(int64_t t_ns) {
  auto at = running_.lower_bound(next_detailed_pid_);
  const auto rounds = std::min<size_t>(kDetailedPerRound, running_.size());
  for (size_t i = 0; i < rounds; ++i, ++at) {
    if (at == running_.end()) at = running_.begin();
    ReadDetailsOf(at->first, at->second.details, t_ns);
  }
  next_detailed_pid_ = at == running_.end() ? 0 : at->first;
}

void ProcessProbe::ReadDetailsOf(int64_t pid, Details& details, int64_t t_ns) {
  const std::string directory = DirectoryOf(pid);
  const auto advance = [&](Counter& counter, std::optional<uint64_t> value, std::optional<double>& rate) {
    if (!value) return rate.reset();
    if (const auto per_second = counter.RatePerSecond(t_ns, *value)) rate = per_second;
  };
  if (const Result<std::string> io = ReadFile(directory + "/io")) {
    advance(details.read_calls, CountAfter(*io, "rchar:"), details.read_calls_per_s);
    advance(details.read, CountAfter(*io, "read_bytes:"), details.read_per_s);
    advance(details.written, CountAfter(*io, "write_bytes:"), details.written_per_s);
  }
  const Result<std::string> status = ReadFile(directory + "/status");
  if (!status) return;
  if (const auto most = CountAfter(*status, "VmHWM:")) details.most_bytes = *most * kKiB;
  constexpr std::string_view kAllowed = "Cpus_allowed_list:";
  if (const size_t at = status->find(kAllowed); at != std::string::npos) {
    if (const auto count =
            CountCpuList(WordCursor(std::string_view(*status).substr(at + kAllowed.size())).Next()))
      details.cpus_allowed = static_cast<double>(*count);
  }
  // The two counters are the last lines.
  const size_t tail =
      status->rfind("voluntary_ctxt_switches", status->rfind("nonvoluntary_ctxt_switches") - 1);
  if (tail == std::string::npos) return;
  const std::string_view lines = std::string_view(*status).substr(tail);
  const auto voluntary = CountAfter(lines, "voluntary_ctxt_switches:");
  const auto forced = CountAfter(lines, "nonvoluntary_ctxt_switches:");
  if (voluntary && forced) advance(details.switches, *voluntary + *forced, details.switches_per_s);
}

void ProcessProbe::ReadDelays(int64_t t_ns) {
  delay_budget_ns_ = std::min(delay_budget_ns_ + kDelayBudgetNsPerRound, kDelayBudgetNsPerRound);
  std::vector<std::pair<int64_t, int64_t>> due;  // (time of the last reading, pid)
  for (auto& [pid, process] : running_) {
    if (process.delay_ns == 0 || process.last_cpu_ticks != process.delay_cpu_ticks) {
      due.emplace_back(process.delay_ns, pid);
    } else if (process.delay_cores) {
      process.delay_cores = 0;
      process.delay.Rest(t_ns);
    }
  }
  std::ranges::sort(due);
  for (const auto& [last, pid] : due) {
    if (delay_budget_ns_ <= 0) return;
    Running& process = running_.at(pid);
    const int64_t begin_ns = ThreadCpuNs();
    process.delay_ns = t_ns;
    process.delay_cpu_ticks = process.last_cpu_ticks;
    process.delay_cores = process.delay.Read(DirectoryOf(pid), t_ns);
    delay_budget_ns_ -= ThreadCpuNs() - begin_ns;
  }
}

void ProcessProbe::ReadSpins(Sink& sink) {
  for (auto& [pid, process] : running_) {
    process.spin = spins_.Take(pid);
    // A pool at work, which may spin; or threads that queue for cores, which may be why.
    const bool worth = process.role == "trainer" && (process.cpu_cores >= kCoresOfAPool ||
                                                     process.delay_cores.value_or(0) >= kDelayToSample);
    if (may_sample_ && worth && !spins_.Samples(pid))
      spins_.Start(pid, DirectoryOf(pid), process.delay.MostDelayed(SpinSampler::kMaxThreadsOfProcess));
  }
  if (spins_.refused() && !std::exchange(said_refused_, true)) {
    sink.Say(
        record::Severity::kInfo, "process",
        "the kernel does not let us sample the threads of the training (perf events): whether they compute "
        "or spin is not known");
  }
}

// Reading smaps_rollup walks the page tables of the process, 1 ms per 100 MB or so, and holds its memory map
// locked meanwhile. So each reading is charged to a budget, and the next waits until the budget allows it.
void ProcessProbe::ReadPss(int64_t t_ns) {
  const bool early = t_ns - first_ns_ < kEarlyNs;
  pss_budget_ns_ =
      std::min(pss_budget_ns_ + (early ? kEarlyPssBudgetNsPerRound : kPssBudgetNsPerRound), kPssBudgetCapNs);
  std::vector<std::tuple<bool, int64_t, int64_t>> due;  // (comes later, time of the last reading, pid)
  for (const auto& [pid, process] : running_) {
    const bool is_worker = process.role == "loader";
    const int64_t interval_ns =
        is_worker ? std::clamp((t_ns - process.adopted_ns) / 4, kShortestPssIntervalNs, kPssIntervalNs)
                  : kPssIntervalNs;
    if (process.pss_ns == 0 || t_ns - process.pss_ns >= interval_ns)
      due.emplace_back(early && !is_worker, process.pss_ns, pid);
  }
  std::ranges::sort(due);
  for (const auto& [later, last, pid] : due) {
    if (pss_budget_ns_ <= 0) return;
    Running& process = running_.at(pid);
    const int64_t begin_ns = ThreadCpuNs();
    process.pss_ns = t_ns;
    process.pss_bytes.reset();
    if (const Result<std::string> text = ReadFile(DirectoryOf(pid) + "/smaps_rollup")) {
      if (const auto kib = CountAfter(*text, "Pss:")) process.pss_bytes = *kib * kKiB;
    }
    pss_budget_ns_ -= ThreadCpuNs() - begin_ns;
  }
}

ProcessProbe::Group& ProcessProbe::GroupOf(const std::string& role, int rank) {
  std::unique_ptr<Group>& group = groups_[{role, rank}];
  if (!group) {
    record::Labels labels = {{"role", role}};
    if (rank >= 0) labels["rank"] = std::to_string(rank);
    group = std::make_unique<Group>(labels);
  }
  return *group;
}

void ProcessProbe::EmitSums(int64_t t_ns, Sink& sink) {
  for (auto& [key, group] : groups_) group->Clear();
  for (const auto& [pid, process] : running_) {
    GroupOf(process.role, -1).Add(process);
    if (process.rank >= 0) GroupOf(process.role, process.rank).Add(process);
  }
  for (const auto& [key, group] : groups_) group->Emit(t_ns, sink);
}

}  // namespace fullbore::probe
