#include "report/page_file.h"

#include <vector>

#include "base/markup.h"
#include "base/printable.h"
#include "base/text.h"
#include "report/page_sources.h"

namespace fullbore::report {

namespace {

using Json = nlohmann::ordered_json;

// JSON that cannot end the script element around it: inside strings, markup becomes \u escapes; outside of
// strings these characters do not occur.
std::string EscapeForScript(std::string_view json) {
  std::string out;
  for (char c : json) {
    switch (c) {
      case '<':
        out += "\\u003c";
        break;
      case '>':
        out += "\\u003e";
        break;
      case '&':
        out += "\\u0026";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string PrintableLines(std::string_view text) {
  std::string out;
  for (const std::string_view line : Split(text, '\n')) out += Printable(line, true) + "\n";
  out.pop_back();
  return out;
}

struct Part {
  std::string_view mark;
  std::string_view text;
};

// In one pass, so that a placeholder inside a filled-in text is left alone.
std::string Fill(std::string_view page, const std::vector<Part>& parts) {
  std::string out;
  for (size_t at = 0; at < page.size();) {
    const Part* found = nullptr;
    for (const Part& part : parts) {
      if (page.substr(at, part.mark.size()) == part.mark) found = &part;
    }
    out += found ? found->text : page.substr(at, 1);
    at += found ? found->mark.size() : 1;
  }
  return out;
}

}  // namespace

Json PrintableJson(const Json& value) {
  if (value.is_string()) return PrintableLines(value.get_ref<const std::string&>());
  if (!value.is_structured()) return value;
  Json out = value.is_array() ? Json::array() : Json::object();
  for (const auto& [key, member] : value.items()) {
    if (value.is_array()) {
      out.push_back(PrintableJson(member));
    } else {
      out[Printable(key, true)] = PrintableJson(member);
    }
  }
  return out;
}

std::string PageFile(const PageParts& parts) {
  const std::string title = InHtml(Printable(parts.title, true));
  const std::string text = InHtml(PrintableLines(parts.text));
  const std::string json = EscapeForScript(PrintableJson(parts.data).dump());
  return Fill(
      kPageHtml,
      {{"@TITLE@", title}, {"@CSS@", parts.css}, {"@TEXT@", text}, {"@DATA@", json}, {"@JS@", parts.js}});
}

}  // namespace fullbore::report
