// Accounts of memory as JSON: schema "fullbore.memory/1", docs/memory.md. Sizes in bytes, times in microseconds since the
// first event. What is unknown is absent.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "explain/memory/account.h"

namespace fullbore::report {

nlohmann::ordered_json MemoryToJson(std::span<const memory::DeviceAccount> accounts, const std::string& name);

}  // namespace fullbore::report
