// Accounts of memory as text for a terminal.
#pragma once

#include <span>
#include <string>

#include "explain/memory/account.h"
#include "report/terminal.h"

namespace fullbore::report {

// `name`: of the file. Texts from it cannot move the cursor.
std::string MemoryToTerminal(std::span<const memory::DeviceAccount> accounts, const std::string& name,
                             const TerminalStyle& style);

}  // namespace fullbore::report
