#include "record/json_text.h"

#include "record/limits.h"

namespace fullbore::record {

nlohmann::json ParseJson(std::string_view text) {
  const auto shallow = [](int depth, nlohmann::json::parse_event_t, nlohmann::json&) {
    return depth <= kMaxJsonDepth;
  };
  nlohmann::json value = nlohmann::json::parse(text, shallow, /*allow_exceptions=*/false);
  return value.is_discarded() ? nlohmann::json() : value;
}

}  // namespace fullbore::record
