// How much work cores do, where some of them are two threads of one core of the chip: what clouds rent as vCPUs.
//
//   capacity(busy) = min(busy, chip) + yield * max(0, busy - chip)       chip = logical cores / threads of each
//
// in cores that have nothing else to do. The second thread of a core yields a quarter of what the first does (D. Marr et
// al., "Hyper-Threading Technology Architecture and Microarchitecture", Intel Technology Journal 6 (1), 2002: servers
// gained 16 to 28 %); cautiously nothing, at best 0.6.
#pragma once

#include "explain/replay/change/change.h"

namespace fullbore::plan {

struct Cores {
  double logical = 0;           // 0: not known
  double threads_per_core = 0;  // 0: not known; then only the cautious outlook takes them for two
};

// What so many busy threads do.
double Capacity(const Cores& cores, double busy, replay::Outlook outlook);
// What all of them do.
inline double Capacity(const Cores& cores, replay::Outlook outlook) {
  return Capacity(cores, cores.logical, outlook);
}

// How many logical cores, of this kind, do so much.
double CoresFor(double capacity, const Cores& kind, replay::Outlook outlook);

}  // namespace fullbore::plan
