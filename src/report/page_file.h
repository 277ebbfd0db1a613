// One HTML file out of its parts: needs no network, opens from disk. What each page draws is its own (html.h,
// and tune/page); that no text in it becomes markup or script is the same for all.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace fullbore::report {

struct PageParts {
  std::string title;
  std::string text;             // for browsers without scripts
  nlohmann::ordered_json data;  // what the script draws
  std::string css, js;          // ours, taken as they are
};

std::string PageFile(const PageParts& parts);

// Every text in it without what would show readers something else than it says: in a browser, too, a
// bidirectional control does.
nlohmann::ordered_json PrintableJson(const nlohmann::ordered_json& value);

}  // namespace fullbore::report
