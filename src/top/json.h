// A state as one line of JSON: docs/top.schema.json ("fullbore.top/1").
#pragma once

#include <cstdint>
#include <string>

#include "top/state.h"

namespace fullbore::top {

std::string ToJsonLine(const State& state, int64_t wall_ns);

}  // namespace fullbore::top
