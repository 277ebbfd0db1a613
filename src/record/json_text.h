// JSON texts in recordings: facts, arguments, labels. They come from training
// processes and from files of others.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

namespace fullbore::record {

// Null if the text is not JSON. Anything nested deeper than limits.h allows is left out.
nlohmann::json ParseJson(std::string_view text);

}  // namespace fullbore::record
