// JSON texts in recordings: facts, arguments, labels. They come from training
// processes and from files of others.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace fullbore::record {

// Null if the text is not JSON, or is nested deeper than limits.h allows.
nlohmann::json ParseJson(std::string_view text);

// A member of an object; 0 where there is none, it is no number, or `object` is no object.
double NumberIn(const nlohmann::json& object, const char* key);

// Likewise; empty where it is no text.
std::string TextIn(const nlohmann::json& object, const char* key);

}  // namespace fullbore::record
