// A report on many runs as Markdown, for a chat or a ticket.
#pragma once

#include <string>

#include "fleet/report.h"

namespace fullbore::fleet {

inline constexpr char kMarkdownTitle[] = "# Where the device hours went";

// `user`: of a letter; else empty. `price`: of a device hour; 0: none is shown.
std::string ToMarkdown(const Report& report, const std::string& user, double price);

}  // namespace fullbore::fleet
