// What it costs to hand a batch over from a worker to the training: pickled, copied into shared memory,
// mapped by the training; half on each side. Measured with the planted causes: docs/measurements.md says how
// and when.
#pragma once

namespace fullbore::replay {

inline constexpr double kHandOverNs = 1.0e6, kHandOverNsPerByte = 1.0;

}  // namespace fullbore::replay
