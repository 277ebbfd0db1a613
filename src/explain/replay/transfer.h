// What a collective costs beside its bytes.
#pragma once

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

}  // namespace fullbore::replay
