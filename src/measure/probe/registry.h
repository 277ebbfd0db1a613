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

// Every probe there is, in the order in which they are sampled. A probe whose source this machine lacks is
// among them and stays silent.
ProbeSet MakeProbes(const Machine& machine);

}  // namespace fullbore::probe
