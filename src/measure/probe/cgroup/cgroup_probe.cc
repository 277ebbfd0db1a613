#include "measure/probe/cgroup/cgroup_probe.h"

#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"
#include "measure/probe/process/process_stat.h"

namespace fullbore::probe {

namespace {

bool Exists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

std::string DirectoryOf(const Machine& machine) {
  return machine.root + "/proc/" + (machine.command_pid > 0 ? std::to_string(machine.command_pid) : "self");
}

}  // namespace

CgroupProbe::CgroupProbe(const Machine& machine)
    : root_(machine.root),
      command_cgroup_(DirectoryOf(machine) + "/cgroup"),
      command_stat_(DirectoryOf(machine) + "/stat"),
      own_cgroup_(machine.root + "/proc/self/cgroup"),
      cpu_limit_(KeyOf(Metric::kCgroupCpuLimit)),
      cpu_throttled_(KeyOf(Metric::kCgroupCpuThrottled)),
      memory_limit_(KeyOf(Metric::kCgroupMemoryLimit)),
      memory_used_(KeyOf(Metric::kCgroupMemoryUsed)),
      memory_cache_(KeyOf(Metric::kCgroupMemoryCache)),
      oom_kills_(KeyOf(Metric::kCgroupOomKills)) {}

void CgroupProbe::Sample(int64_t t_ns, Sink& sink) {
  Follow();
  ReadLimits(t_ns, sink);
  ReadThrottling(t_ns, sink);
  ReadMemory(t_ns, sink);
  ReadOomKills(t_ns, sink);
  if (files_.pressure) files_.pressure->Sample(t_ns, sink);
}

// A wrapper may move itself into another group before it starts the training. When the command has ended,
// its last group is kept, because the kills are counted there: a zombie belongs to the root of v1
// hierarchies, and its pid may be reused.
void CgroupProbe::Follow() {
  auto text = command_cgroup_.Read();
  if (text && !CommandIsAlive()) text.reset();
  if (!text && cgroup_text_.empty()) text = own_cgroup_.Read();
  if (!text || text->empty() || *text == cgroup_text_) return;
  cgroup_text_ = *text;
  OpenFiles(cgroup_text_);
}

// Checked after the group was read: if the process is still the same one, the reading was right.
bool CgroupProbe::CommandIsAlive() {
  const auto text = command_stat_.Read();
  const auto stat = text ? ParseProcessStat(*text) : std::nullopt;
  if (!stat || (command_start_ticks_ && stat->start_ticks != *command_start_ticks_)) return false;
  command_start_ticks_ = stat->start_ticks;
  return stat->alive();
}

void CgroupProbe::OpenFiles(const std::string& cgroup_text) {
  files_ = Files();
  const Result<std::string> mountinfo = ReadFile(root_ + "/proc/self/mountinfo");
  if (!mountinfo) return;
  files_.cgroup = FindCgroup(root_, cgroup_text, *mountinfo);
  const Cgroup& cgroup = files_.cgroup;
  // A controller is either in the unified hierarchy or in its own: the files show which.
  if (cgroup.unified.found() && Exists(cgroup.unified.own() + "/memory.current")) {
    files_.memory_used.emplace(cgroup.unified.own() + "/memory.current");
    files_.memory_stat.emplace(cgroup.unified.own() + "/memory.stat");
    files_.oom.emplace(cgroup.unified.own() + "/memory.events");
  } else if (cgroup.memory.found()) {
    files_.memory_is_v1 = true;
    files_.memory_used.emplace(cgroup.memory.own() + "/memory.usage_in_bytes");
    files_.memory_stat.emplace(cgroup.memory.own() + "/memory.stat");
    files_.oom.emplace(cgroup.memory.own() + "/memory.oom_control");
  }
  if (cgroup.unified.found() && Exists(cgroup.unified.own() + "/cpu.max")) {
    files_.cpu_stat.emplace(cgroup.unified.own() + "/cpu.stat");
  } else if (cgroup.cpu.found()) {
    files_.cpu_stat.emplace(cgroup.cpu.own() + "/cpu.stat");
  }
  if (cgroup.unified.found()) files_.pressure.emplace(cgroup.unified.own(), PressureFiles::Scope::kCgroup);
}

void CgroupProbe::ReadLimits(int64_t t_ns, Sink& sink) {
  if (const auto cores = CpuLimitCores(files_.cgroup)) sink.Read(cpu_limit_, t_ns, *cores);
  if (const auto bytes = MemoryLimitBytes(files_.cgroup))
    sink.Read(memory_limit_, t_ns, static_cast<double>(*bytes));
}

// The fraction of the scheduler's periods in which the group used up its quota and was stopped. The throttled
// time would not do: it adds up over cores.
void CgroupProbe::ReadThrottling(int64_t t_ns, Sink& sink) {
  if (!files_.cpu_stat) return;
  const auto text = files_.cpu_stat->Read();
  if (!text) return;
  const auto periods = CountAfter(*text, "nr_periods");
  const auto throttled = CountAfter(*text, "nr_throttled");
  if (!periods || !throttled || *periods == 0) return;  // no quota: no periods
  const auto new_periods = files_.periods.Advance(t_ns, *periods);
  const auto new_throttled = files_.throttled_periods.Advance(t_ns, *throttled);
  if (!new_periods || !new_throttled) return;
  const auto count = static_cast<double>(new_periods->count);
  sink.Read(cpu_throttled_, t_ns, count > 0 ? static_cast<double>(new_throttled->count) / count : 0);
}

void CgroupProbe::ReadMemory(int64_t t_ns, Sink& sink) {
  if (!files_.memory_used) return;
  if (const auto text = files_.memory_used->Read()) {
    if (const auto bytes = WordCursor(*text).NextCount())
      sink.Read(memory_used_, t_ns, static_cast<double>(*bytes));
  }
  const auto text = files_.memory_stat->Read();
  if (!text) return;
  const auto file = CountAfter(*text, files_.memory_is_v1 ? "total_cache" : "file");
  // Shared memory is counted as page cache, but cannot be dropped.
  const auto shared = CountAfter(*text, files_.memory_is_v1 ? "total_shmem" : "shmem");
  if (file && shared && *shared <= *file)
    sink.Read(memory_cache_, t_ns, static_cast<double>(*file - *shared));
}

void CgroupProbe::ReadOomKills(int64_t t_ns, Sink& sink) {
  if (!files_.oom) return;
  const auto text = files_.oom->Read();
  if (!text) return;
  const auto kills = CountAfter(*text, "oom_kill");
  if (!kills) return;
  if (!files_.first_oom_kills) files_.first_oom_kills = kills;
  sink.Read(oom_kills_, t_ns, static_cast<double>(*kills - *files_.first_oom_kills));
}

}  // namespace fullbore::probe
