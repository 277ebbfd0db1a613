#include "report/finding_pages.h"

#include <algorithm>

#include "base/text.h"
#include "report/page_sources.h"

namespace fullbore::report {

namespace {

// The number of backquotes or tildes that begin the line, after at most three blanks: three or more open a
// block of code, and as many of the same kind close it.
std::string_view FenceOf(std::string_view line) {
  const size_t begin = line.find_first_not_of(' ');
  if (begin == std::string_view::npos || begin > 3 || (line[begin] != '`' && line[begin] != '~')) return {};
  const size_t end = std::min(line.find_first_not_of(line[begin], begin), line.size());
  return end - begin < 3 ? std::string_view() : line.substr(begin, end - begin);
}

// The pages follow one another. Each begins with a heading "# id: ...", its only first-level one. Inside a
// block of code such a line is a comment.
std::vector<std::string_view> Cut() {
  std::vector<size_t> begins;
  std::string_view open;
  for (size_t at = 0; at < kFindingPages.size();) {
    const size_t end = std::min(kFindingPages.find('\n', at), kFindingPages.size());
    const std::string_view line = kFindingPages.substr(at, end - at);
    const std::string_view fence = FenceOf(line);
    if (open.empty()) {
      open = fence;
      if (line.starts_with("# ")) begins.push_back(at);
    } else if (fence.starts_with(open) && Trim(line) == fence) {
      open = {};
    }
    at = end + 1;
  }
  std::vector<std::string_view> pages;
  for (size_t i = 0; i < begins.size(); ++i) {
    const size_t end = i + 1 < begins.size() ? begins[i + 1] : kFindingPages.size();
    pages.push_back(kFindingPages.substr(begins[i], end - begins[i]));
  }
  return pages;
}

}  // namespace

const std::vector<std::string_view>& FindingPages() {
  static const std::vector<std::string_view> kPages = Cut();
  return kPages;
}

// "input-bound" from "# input-bound: training waits for data".
std::string IdOfFindingPage(std::string_view page) {
  const size_t begin = page.find_first_not_of("# ");
  return std::string(page.substr(begin, page.find(':') - begin));
}

std::optional<std::string_view> FindingPage(std::string_view id) {
  for (const std::string_view page : FindingPages())
    if (IdOfFindingPage(page) == id) return page;
  return std::nullopt;
}

}  // namespace fullbore::report
