// docs/findings/*.md, one after another, embedded at build time.
#pragma once

#include <string_view>

namespace fullbore::cli {

extern const std::string_view kFindingPages;

}  // namespace fullbore::cli
