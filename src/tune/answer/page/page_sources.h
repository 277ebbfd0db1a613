// The sources of the page (web/tune, and what it shares with web/report), embedded at build time.
#pragma once

#include <string_view>

namespace fullbore::tune {

extern const std::string_view kTuneCss;
extern const std::string_view kTuneJs;

}  // namespace fullbore::tune
