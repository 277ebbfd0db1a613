#include "record/json_text.h"

#include "base/json_extent.h"
#include "record/limits.h"

namespace fullbore::record {

nlohmann::json ParseJson(std::string_view text) {
  if (ExtentOfJson(text).depth > kMaxJsonDepth) return {};
  nlohmann::json value = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  return value.is_discarded() ? nlohmann::json() : value;
}

double NumberIn(const nlohmann::json& object, const char* key) {
  if (!object.is_object()) return 0;
  const auto at = object.find(key);
  return at != object.end() && at->is_number() ? at->get<double>() : 0;
}

std::string TextIn(const nlohmann::json& object, const char* key) {
  const auto member = object.find(key);
  return member != object.end() && member->is_string() ? member->get<std::string>() : "";
}

}  // namespace fullbore::record
