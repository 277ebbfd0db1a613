// What collectives carry: gradients and weights, which a data parallel wrapper exchanges, or activations, which the
// model itself passes on between its parts: advice for the one is wrong for the other.
#pragma once

#include <vector>

#include "timeline/device/phases.h"
#include "timeline/device/trace.h"

namespace fullbore::timeline {

// Of each operation of the trace, whether it is a collective that carries activations:
// - all-to-all (experts, embeddings) and point to point (pipelines);
// - all-reduces and reduce-scatters of a group in which a good part of them stands in the forward pass, where no
//   gradient is known yet: layers that are split over ranks (tensor or sequence parallel);
// - all of what a serving engine does, and kernels that only inference libraries have.
// Where the passes were not recorded, a group of all-reduces is not known to carry activations.
std::vector<bool> CarryingActivations(const DeviceTrace& trace, const Phases& phases);

}  // namespace fullbore::timeline
