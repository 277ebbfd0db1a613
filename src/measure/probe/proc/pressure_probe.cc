#include "measure/probe/proc/pressure_probe.h"

#include <algorithm>

#include "base/text.h"

namespace fullbore::probe {

namespace {

// "full" for the CPU is always 0 for the whole machine (a CPU that runs nothing is idle): not recorded.
struct Resource {
  const char* name;
  Metric some;
  std::optional<Metric> full;
};
constexpr Resource kOfMachine[] = {{"cpu", Metric::kPsiCpuSome, {}},
                                   {"io", Metric::kPsiIoSome, Metric::kPsiIoFull},
                                   {"memory", Metric::kPsiMemorySome, Metric::kPsiMemoryFull}};
constexpr Resource kOfCgroup[] = {{"cpu", Metric::kCgroupPsiCpuSome, {}},
                                  {"io", Metric::kCgroupPsiIoSome, Metric::kCgroupPsiIoFull},
                                  {"memory", Metric::kCgroupPsiMemorySome, Metric::kCgroupPsiMemoryFull}};

// "some avg10=1.17 avg60=0.87 avg300=0.49 total=11351059"
std::optional<int64_t> TotalUs(std::string_view line) {
  constexpr std::string_view kTotal = "total=";
  const size_t at = line.rfind(kTotal);
  if (at == std::string_view::npos) return std::nullopt;
  return ParseInt(Trim(line.substr(at + kTotal.size())));
}

}  // namespace

PressureFiles::PressureFiles(const std::string& directory, Scope scope) {
  // The kernel names them /proc/pressure/cpu, but cpu.pressure in a cgroup.
  const std::string suffix = scope == Scope::kCgroup ? ".pressure" : "";
  for (const Resource& resource : scope == Scope::kCgroup ? kOfCgroup : kOfMachine) {
    File file{TextFile(directory + "/" + resource.name + suffix), {}};
    file.stalls.push_back({"some", Counter(), KeyOf(resource.some)});
    if (resource.full) file.stalls.push_back({"full", Counter(), KeyOf(*resource.full)});
    files_.push_back(std::move(file));
  }
}

bool PressureFiles::Sample(int64_t t_ns, Sink& sink) {
  bool any = false;
  for (File& file : files_) {
    const auto text = file.text.Read();
    if (!text) continue;
    any = true;
    LineCursor lines(*text);
    for (std::string_view line; lines.Next(line);) {
      for (Stall& stall : file.stalls) {
        if (!line.starts_with(stall.kind)) continue;
        const std::optional<int64_t> total_us = TotalUs(line);
        if (!total_us || *total_us < 0) continue;
        const auto stalled = stall.total_us.RatePerSecond(t_ns, static_cast<uint64_t>(*total_us));
        // Our clock and the kernel's are read at different moments, so a full stall may come out above 1.
        if (stalled) sink.Read(stall.key, t_ns, std::min(*stalled / 1e6, 1.0));
      }
    }
  }
  return any;
}

PressureProbe::PressureProbe(const Machine& machine)
    : files_(machine.root + "/proc/pressure", PressureFiles::Scope::kMachine) {}

void PressureProbe::Sample(int64_t t_ns, Sink& sink) {
  if (files_.Sample(t_ns, sink) || said_) return;
  said_ = true;
  sink.Say(
      record::Severity::kInfo, "pressure",
      "no pressure stall information: /proc/pressure cannot be read (Linux before 4.20, or the kernel was "
      "started without psi=1)");
}

}  // namespace fullbore::probe
