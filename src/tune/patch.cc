#include "tune/patch.h"

#include <fmt/format.h>

#include <algorithm>
#include <regex>
#include <vector>

#include "base/text.h"

namespace fullbore::tune {

namespace {

constexpr size_t kContext = 3;
constexpr size_t kMostOfACall = 40;    // lines
constexpr size_t kMostOfALine = 2000;  // std::regex recurses with the length of its input

// One past the last line of the call that begins at `first`: where its parentheses close.
size_t EndOfCall(const std::vector<std::string>& lines, size_t first) {
  int open = 0;
  for (size_t i = first; i < std::min(lines.size(), first + kMostOfACall); ++i) {
    open += static_cast<int>(std::count(lines[i].begin(), lines[i].end(), '('));
    open -= static_cast<int>(std::count(lines[i].begin(), lines[i].end(), ')'));
    if (open <= 0) return i + 1;
  }
  return first;  // no call that we understand
}

std::string InPython(const nlohmann::json& value) {
  return value.is_boolean() ? (value.get<bool>() ? "True" : "False") : ToText(value);
}

}  // namespace

std::string PatchOf(std::string_view text, const std::string& path, int line, const Settings& settings) {
  std::vector<std::string> before;
  for (const std::string_view each : Split(text, '\n')) before.emplace_back(each);
  const bool ends_whole = !before.empty() && before.back().empty();
  if (ends_whole) before.pop_back();
  if (line < 1 || static_cast<size_t>(line) > before.size()) return "";
  std::vector<std::string> after = before;
  const size_t begin = static_cast<size_t>(line) - 1, end = EndOfCall(before, begin);
  for (const auto& [name, value] : settings) {
    const std::regex argument("([(, \t]|^)(" + name + R"(\s*=\s*)(\d+|True|False)(?=\s*[,)#]|\s*$))");
    for (size_t i = begin; i < end; ++i) {
      if (after[i].size() > kMostOfALine) continue;
      after[i] = std::regex_replace(after[i], argument, "$1$2" + std::string("\x01"));
      for (size_t at = 0; (at = after[i].find('\x01', at)) != std::string::npos;)
        after[i].replace(at, 1, InPython(value));
    }
  }
  if (after == before) return "";
  size_t first = begin, last = end;
  while (before[first] == after[first]) ++first;
  while (before[last - 1] == after[last - 1]) --last;
  const size_t from = first > kContext ? first - kContext : 0, to = std::min(before.size(), last + kContext);
  std::string diff =
      fmt::format("--- a/{0}\n+++ b/{0}\n@@ -{1},{2} +{1},{2} @@\n", path, from + 1, to - from);
  const auto put = [&](char mark, size_t i, const std::string& what) {
    diff += fmt::format("{}{}\n", mark, what);
    if (i + 1 == before.size() && !ends_whole) diff += "\\ No newline at end of file\n";
  };
  for (size_t i = from; i < to; ++i) {
    if (before[i] == after[i]) {
      put(' ', i, before[i]);
      continue;
    }
    put('-', i, before[i]);
    put('+', i, after[i]);
  }
  return diff;
}

}  // namespace fullbore::tune
