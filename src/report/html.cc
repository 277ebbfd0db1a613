#include "report/html.h"

#include "report/page_data.h"
#include "report/page_sources.h"
#include "report/terminal.h"

namespace fullbore::report {

namespace {

std::string EscapeMarkup(std::string_view text) {
  std::string out;
  for (char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

// JSON that cannot end the script element it stands in: inside strings, markup becomes \u escapes; outside of
// them these characters do not occur.
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

struct Part {
  std::string_view mark;
  std::string_view text;
};

// One pass, so that a mark inside a filled-in text stays what it is.
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

std::string ToHtml(const diagnose::Diagnosis& diagnosis, const record::Recording& recording) {
  const nlohmann::ordered_json data = PageData(diagnosis, recording);
  using Json = nlohmann::ordered_json;
  const std::string json =
      EscapeForScript(data.dump(-1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace));
  const std::string title = EscapeMarkup(PageTitle(diagnosis));
  const std::string text = EscapeMarkup(ToTerminal(diagnosis, {100, false, true}));
  return Fill(
      kPageHtml,
      {{"@TITLE@", title}, {"@CSS@", kPageCss}, {"@TEXT@", text}, {"@DATA@", json}, {"@JS@", kPageJs}});
}

}  // namespace fullbore::report
