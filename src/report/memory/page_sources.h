// The sources of the page of a memory snapshot, embedded by CMake.
#pragma once

#include <string_view>

namespace fullbore::report {

extern const std::string_view kMemoryCss;
extern const std::string_view kMemoryJs;

}  // namespace fullbore::report
