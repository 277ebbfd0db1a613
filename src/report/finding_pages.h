// docs/findings/*.md, embedded at build time: what `fullbore help FINDING` prints and the HTML report shows.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fullbore::report {

// One page each, in Markdown, beginning with its heading "# id: ...".
const std::vector<std::string_view>& FindingPages();

std::string IdOfFindingPage(std::string_view page);

std::optional<std::string_view> FindingPage(std::string_view id);

}  // namespace fullbore::report
