// The steady state of one stage, divided among what its devices waited for, what else is known of it, and the rest, which
// is work. Each rank is divided by its own steps: of what a finding is about, the part that the finding says, of the rank
// that has most of it. Private to the accounts.
#pragma once

#include <cstdint>
#include <vector>

#include "explain/diagnose/diagnosis.h"
#include "fleet/part.h"
#include "record/recording.h"

namespace fullbore::fleet {

struct Stretch {
  int64_t begin_ns = 0, end_ns = 0;
};

// The parts of `device_ns`, to which they sum: the device time of that stretch of the stage's steady state.
std::vector<Part> Divide(const record::Stage& stage, const diagnose::Diagnosis& diagnosis, const Stretch& of,
                         int64_t device_ns);

}  // namespace fullbore::fleet
