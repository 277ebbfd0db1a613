// What a collective costs beside its bytes.
#pragma once

#include "explain/replay/change.h"

namespace fullbore::replay {

// Without the wait for its last rank: a + bytes / rate, as the collectives of these steps show (Hockney's model).
struct Transfer {
  double start_ns = 0;     // of a collective without bytes
  double ns_per_byte = 0;  // 0 where sizes are not known: then all of it is the start
  bool told = true;        // sizes are known, and differ enough for both to be told apart
  double shortest_ns = 0;  // of the collectives: no start is longer

  // For each collective that becomes a part of another.
  double SavedNs(Outlook outlook) const;
};
Transfer TransferOf(const record::StepGraph& graph);

}  // namespace fullbore::replay
