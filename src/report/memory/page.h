// Accounts of memory as one HTML file: memory over time, what stood when it was fullest by line, and what other settings
// would have reserved. As the report's page, it needs no network.
#pragma once

#include <span>
#include <string>

#include "explain/memory/account.h"

namespace fullbore::report {

std::string MemoryToHtml(std::span<const memory::DeviceAccount> accounts, const std::string& name);

}  // namespace fullbore::report
