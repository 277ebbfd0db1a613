// What an account of a device's memory says to a person: the same sentences in the terminal, in JSON and on the page.
#pragma once

#include <string>
#include <vector>

#include "explain/memory/account.h"

namespace fullbore::report {

// The most important first; never empty.
std::vector<std::string> MemorySentences(const memory::DeviceAccount& account);

// What has to be known to read them: how far the record reaches, how far the replay can be believed.
std::vector<std::string> MemoryLimits(const memory::DeviceAccount& account);

// "reserves 20.1 GB at most, 3.3 GB less", or that it does not fit.
std::string WhatIfText(const memory::WhatIf& what_if, const memory::DeviceAccount& account);

// "2.310 s", of a moment since the first event; "" where times are not recorded.
std::string TimeText(const memory::Moment& moment);

}  // namespace fullbore::report
