// Texts within markup of others: names are data, and what would be markup in them is not.
#pragma once

#include <string>
#include <string_view>

namespace fullbore {

std::string InMarkdown(std::string_view text);  // within a line or a cell of a table: breaks become blanks
std::string InXml(std::string_view text);  // also within a quoted attribute; without what XML cannot hold
std::string InHtml(std::string_view text);

}  // namespace fullbore
