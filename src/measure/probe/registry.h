// The table of all probes.
#pragma once

#include <memory>
#include <vector>

#include "measure/probe/probe.h"

namespace fullbore::probe {

class ProcessProbe;

struct ProbeSet {
  std::vector<std::unique_ptr<Probe>> probes;
  ProcessProbe* processes = nullptr;  // one of them: the recorder tells it roles and asks it who lives
};

// Those of the machine as a whole, whatever runs on it and without its GPUs.
std::vector<std::unique_ptr<Probe>> MakeHostProbes(const Machine& machine);

// Every probe, in the order of sampling. A probe whose source this machine lacks
// is included and stays silent.
ProbeSet MakeProbes(const Machine& machine);

}  // namespace fullbore::probe
