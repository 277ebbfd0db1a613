// A figure with its unit, for a sentence: "43 %", "1.2 GB/s", "71 celsius".
#pragma once

#include <string>
#include <string_view>

namespace fullbore::watch {

std::string Figure(double value, std::string_view unit);

}  // namespace fullbore::watch
