// What is left of the host's memory now.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace fullbore::probe {

// What processes that this one starts could still have, in bytes: of the machine, or of what its control group and
// those above it may take. Nothing where neither can be read.
std::optional<int64_t> MemoryLeft(const std::string& root = "");

}  // namespace fullbore::probe
