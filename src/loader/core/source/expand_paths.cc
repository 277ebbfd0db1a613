#include <fmt/format.h>
#include <glob.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

#include "loader/core/source/paths.h"
#include "loader/core/store.h"

namespace fullbore::loader {

namespace {

// More shards than any data set has: a mistyped range fails here instead of filling the memory.
constexpr size_t kMaxPaths = 1'000'000;

struct Range {
  size_t begin = 0, end = 0;  // of "{a..b}" in the text
  int64_t first = 0, last = 0;
  size_t width = 0;  // 0: as many digits as the number has
};

struct Number {
  int64_t value = 0;
  size_t width = 0;
  bool padded = false;
};

// At most 18 digits, so that arithmetic on it cannot overflow.
std::optional<Number> ParseNumber(std::string_view text) {
  constexpr size_t kMaxDigits = 18;
  if (text.empty() || text.size() > kMaxDigits) return std::nullopt;
  Number number{0, text.size(), text.size() > 1 && text[0] == '0'};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number.value);
  if (error != std::errc() || end != text.data() + text.size() || number.value < 0) return std::nullopt;
  return number;
}

// The first "{number..number}" of `text`; other braces are part of a name.
std::optional<Range> FindRange(std::string_view text) {
  for (size_t open = text.find('{'); open != std::string_view::npos; open = text.find('{', open + 1)) {
    const size_t close = text.find('}', open);
    if (close == std::string_view::npos) return std::nullopt;
    const std::string_view inside = text.substr(open + 1, close - open - 1);
    const size_t dots = inside.find("..");
    if (dots == std::string_view::npos) continue;
    const auto first = ParseNumber(inside.substr(0, dots));
    const auto last = ParseNumber(inside.substr(dots + 2));
    if (!first || !last) continue;
    const bool padded = first->padded || last->padded;
    return Range{open, close + 1, first->value, last->value,
                 padded ? std::max(first->width, last->width) : 0};
  }
  return std::nullopt;
}

Result<void> ExpandBraces(std::string_view before, std::string_view rest, std::vector<std::string>& out) {
  const auto range = FindRange(rest);
  if (!range) {
    if (out.size() >= kMaxPaths) {
      return Error{
          ErrorCode::kInvalidArgument,
          fmt::format("'{}{}' and the paths before it are more than {} paths", before, rest, kMaxPaths),
          "give a directory or a \"*\" pattern"};
    }
    out.push_back(std::string(before) + std::string(rest));
    return {};
  }
  const int64_t step = range->first <= range->last ? 1 : -1;
  for (int64_t number = range->first;; number += step) {
    const std::string begin =
        fmt::format("{}{}{:0{}}", before, rest.substr(0, range->begin), number, range->width);
    if (auto expanded = ExpandBraces(begin, rest.substr(range->end), out); !expanded) return expanded;
    if (number == range->last) return {};
  }
}

// Only "*" and "?" are special here; "[" is an ordinary character.
std::string GlobPattern(std::string_view path) {
  std::string pattern;
  for (const char c : path) pattern += c == '[' ? std::string("[[]") : std::string(1, c);
  return pattern;
}

Result<void> ExpandGlob(const std::string& path, std::vector<std::string>& out) {
  glob_t found{};
  const int status = glob(GlobPattern(path).c_str(), GLOB_NOSORT | GLOB_NOESCAPE, nullptr, &found);
  // glob() would sort by locale, which may differ between the machines of a job.
  std::vector<std::string> matches(found.gl_pathv, found.gl_pathv + (status == 0 ? found.gl_pathc : 0));
  globfree(&found);
  if (matches.empty()) {
    return Error{ErrorCode::kNotFound, fmt::format("no file matches '{}'", path),
                 "relative paths are taken from the working directory"};
  }
  std::sort(matches.begin(), matches.end());
  std::move(matches.begin(), matches.end(), std::back_inserter(out));
  return {};
}

bool Exists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

}  // namespace

Result<std::vector<std::string>> ExpandPaths(const std::vector<std::string>& patterns) {
  std::vector<std::string> expanded, paths;
  for (const std::string& pattern : patterns) {
    const bool remote = IsRemote(pattern);
    const std::string path = remote ? pattern : LocalPath(pattern);
    if (!remote && Exists(path)) {
      paths.push_back(path);
      continue;
    }
    expanded.clear();
    if (auto braces = ExpandBraces("", path, expanded); !braces) return braces.error();
    for (std::string& name : expanded) {
      if (remote || name.find_first_of("*?") == std::string::npos) {
        paths.push_back(std::move(name));
      } else if (auto matched = ExpandGlob(name, paths); !matched) {
        return matched.error();
      }
    }
  }
  return paths;
}

}  // namespace fullbore::loader
