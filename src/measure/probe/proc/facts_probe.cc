#include "measure/probe/proc/facts_probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/fd.h"
#include "base/text.h"
#include "measure/probe/cgroup/cgroup.h"
#include "measure/probe/text_file.h"

namespace fullbore::probe {

namespace {

struct CpuInfo {
  std::string model;  // empty if /proc/cpuinfo names none (ARM)
  std::string bf16;   // the widest instructions for bfloat16; empty if there are none
  int64_t logical = 0;
  std::set<std::pair<std::string, std::string>> physical;  // (socket, core); empty if not given
};

// Linux lists them among the flags (x86) or the features (ARM) of each core.
std::string Bfloat16Of(std::string_view flags) {
  constexpr std::pair<std::string_view, std::string_view> kKinds[] = {
      {"amx_bf16", "AMX"}, {"avx512_bf16", "AVX512"}, {"svebf16", "SVE"}, {"bf16", "NEON"}};
  for (const auto& [flag, name] : kKinds) {
    WordCursor words(flags);
    for (std::string_view word = words.Next(); !word.empty(); word = words.Next()) {
      if (word == flag) return std::string(name);
    }
  }
  return "";
}

CpuInfo ParseCpuinfo(std::string_view text) {
  CpuInfo info;
  std::string socket;
  LineCursor lines(text);
  for (std::string_view line; lines.Next(line);) {
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    const std::string_view key = Trim(line.substr(0, colon));
    const std::string_view value = Trim(line.substr(colon + 1));
    if (key == "processor") ++info.logical;
    if (key == "model name" && info.model.empty()) info.model = value;
    if ((key == "flags" || key == "Features") && info.logical == 1) info.bf16 = Bfloat16Of(value);
    if (key == "physical id") socket = value;
    if (key == "core id") info.physical.emplace(socket, std::string(value));
  }
  return info;
}

}  // namespace

void FactsProbe::Sample(int64_t, Sink& sink) {
  if (std::exchange(said_, true)) return;
  const auto say_file = [&](std::string_view fact, const std::string& path) {
    if (const Result<std::string> text = ReadFile(root_ + path)) sink.SetMachineFact(fact, Trim(*text));
  };
  say_file("hostname", "/proc/sys/kernel/hostname");
  say_file("kernel", "/proc/sys/kernel/osrelease");
  SayCpu(sink);
  SayLimits(sink);
  if (const Result<std::string> meminfo = ReadFile(root_ + "/proc/meminfo")) {
    if (const auto kib = CountAfter(*meminfo, "MemTotal:")) {
      sink.SetMachineFact("memory_bytes", std::to_string(*kib * 1024));
    }
  }
}

void FactsProbe::SayCpu(Sink& sink) const {
  const Result<std::string> text = ReadFile(root_ + "/proc/cpuinfo");
  if (!text) return;
  const CpuInfo info = ParseCpuinfo(*text);
  if (!info.model.empty()) sink.SetMachineFact("cpu_model", info.model);
  if (!info.bf16.empty()) sink.SetMachineFact("cpu_bf16", info.bf16);
  if (info.logical > 0) sink.SetMachineFact("cores_logical", std::to_string(info.logical));
  if (!info.physical.empty()) sink.SetMachineFact("cores_physical", std::to_string(info.physical.size()));
}

// "cores" is what the command can use: the tightest of affinity, cpuset and quota. The command inherits
// all three from this process.
void FactsProbe::SayLimits(Sink& sink) const {
  const Result<std::string> cgroup_text = ReadFile(root_ + "/proc/self/cgroup");
  const Result<std::string> mountinfo = ReadFile(root_ + "/proc/self/mountinfo");
  Cgroup cgroup;
  if (cgroup_text && mountinfo) cgroup = FindCgroup(root_, *cgroup_text, *mountinfo);
  std::optional<double> cores;
  const auto bound = [&cores](double limit) { cores = cores ? std::min(*cores, limit) : limit; };
  if (const Result<std::string> status = ReadFile(root_ + "/proc/self/status")) {
    LineCursor lines(*status);
    for (std::string_view line; lines.Next(line);) {
      WordCursor words(line);
      if (words.Next() != "Cpus_allowed_list:") continue;
      if (const auto count = CountCpuList(words.Next())) bound(static_cast<double>(*count));
    }
  }
  if (const auto count = CpusetCores(cgroup)) bound(static_cast<double>(*count));
  if (const auto quota = CpuLimitCores(cgroup)) {
    bound(*quota);
    sink.SetMachineFact("cgroup_cpu_limit", fmt::format("{:.4g}", *quota));
  }
  if (cores) sink.SetMachineFact("cores", fmt::format("{:.4g}", *cores));
  if (const auto bytes = MemoryLimitBytes(cgroup))
    sink.SetMachineFact("cgroup_memory_limit", std::to_string(*bytes));
}

}  // namespace fullbore::probe
