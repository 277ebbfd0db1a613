#include "base/json_extent.h"

#include <algorithm>

namespace fullbore {

namespace {

// Where the text ends whose opening quote is at `at`.
size_t EndOfText(std::string_view json, size_t at) {
  for (++at; at < json.size() && json[at] != '"'; ++at) at += json[at] == '\\' ? 1 : 0;
  return at;
}

}  // namespace

JsonExtent ExtentOfJson(std::string_view text) {
  JsonExtent extent{0, 1};
  int depth = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '"') at = EndOfText(text, at);
    if (c == '{' || c == '[') extent.depth = std::max(extent.depth, ++depth);
    if (c == '}' || c == ']') --depth;
    if (c == '{' || c == '[' || c == ',' || c == ':') ++extent.values;
  }
  return extent;
}

}  // namespace fullbore
