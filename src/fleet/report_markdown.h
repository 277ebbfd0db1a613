// A report on many runs as Markdown, for a chat or a ticket.
#pragma once

#include <string>

#include "fleet/report.h"

namespace fullbore::fleet {

inline constexpr char kMarkdownTitle[] = "# Where the device hours went";

std::string ToMarkdown(const Report& report, const ReportFor& whom);

}  // namespace fullbore::fleet
