#include "measure/probe/registry.h"

#include "measure/probe/cgroup/cgroup_probe.h"
#include "measure/probe/nvml/nvml_probes.h"
#include "measure/probe/proc/cpu_probe.h"
#include "measure/probe/proc/disk_probe.h"
#include "measure/probe/proc/facts_probe.h"
#include "measure/probe/proc/memory_probe.h"
#include "measure/probe/proc/net_probe.h"
#include "measure/probe/proc/pressure_probe.h"
#include "measure/probe/proc/space_probe.h"
#include "measure/probe/process/process_probe.h"
#include "measure/probe/shm/shm_probe.h"

namespace fullbore::probe {

std::vector<std::unique_ptr<Probe>> MakeHostProbes(const Machine& machine) {
  std::vector<std::unique_ptr<Probe>> probes;
  probes.push_back(std::make_unique<FactsProbe>(machine));
  probes.push_back(std::make_unique<CpuProbe>(machine));
  probes.push_back(std::make_unique<MemoryProbe>(machine));
  probes.push_back(std::make_unique<PressureProbe>(machine));
  probes.push_back(std::make_unique<DiskProbe>(machine));
  probes.push_back(std::make_unique<NetProbe>(machine));
  probes.push_back(std::make_unique<SpaceProbe>(machine));
  return probes;
}

ProbeSet MakeProbes(const Machine& machine) {
  ProbeSet set;
  set.probes = MakeHostProbes(machine);
  const auto add = [&set]<typename P>(std::unique_ptr<P> probe) {
    P* added = probe.get();
    set.probes.push_back(std::move(probe));
    return added;
  };
  add(std::make_unique<CgroupProbe>(machine));
  set.processes = add(std::make_unique<ProcessProbe>(machine));
  add(std::make_unique<ShmProbe>(machine, [p = set.processes] { return p->OneWithRole("loader"); }));
  const auto session = std::make_shared<nvml::Session>();
  add(std::make_unique<nvml::FastProbe>(session));
  add(std::make_unique<nvml::SlowProbe>(session,
                                        [p = set.processes](int64_t pid) { return p->IsOurs(pid); }));
  return set;
}

}  // namespace fullbore::probe
