// What a collective costs beside its bytes.
#pragma once

#include <cstdint>
#include <vector>

#include "explain/replay/change/change.h"

namespace fullbore::replay {

// Without the wait for its last rank: a + bytes / rate, as the collectives of these steps show (Hockney's model).
struct Transfer {
  bool told = false;       // sizes are known, and differ enough for both to be told apart
  double start_ns = 0;     // of a collective without bytes; where sizes are not known, all of the shortest
  double shortest_ns = 0;  // of the collectives: no start is longer

  // For each collective that becomes a part of another.
  double SavedNs(Outlook outlook) const;
};
// Of a graph as it was recorded: what has been changed already tells nothing.
Transfer TransferOf(const record::StepGraph& graph);

// The calls that launch a graph's collectives.
class CollectiveCalls {
 public:
  explicit CollectiveCalls(const record::StepGraph& graph);
  // One whose collective is not there any more is not made, nor is the host's way to it. A call that launches more than it,
  // as that of a CUDA graph, stays.
  void LeaveOut(uint32_t collective, Outlook outlook, record::StepGraph& graph) const;

 private:
  std::vector<uint32_t> launches_;  // by node
};

}  // namespace fullbore::replay
