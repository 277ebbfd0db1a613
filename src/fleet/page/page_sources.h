// The sources of the pages (web/fleet, and what they share with web/report), embedded at build time.
#pragma once

#include <string_view>

namespace fullbore::fleet {

extern const std::string_view kFleetCss;
extern const std::string_view kJobJs;
extern const std::string_view kReportJs;

}  // namespace fullbore::fleet
