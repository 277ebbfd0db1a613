#include "report/html.h"

#include "report/page_data.h"
#include "report/page_file.h"
#include "report/page_sources.h"
#include "report/terminal.h"

namespace fullbore::report {

namespace {

std::string FileOf(const diagnose::Diagnosis& diagnosis, nlohmann::ordered_json data) {
  return PageFile({PageTitle(diagnosis), ToTerminal(diagnosis, {100, false, true}), std::move(data),
                   std::string(kPageCss), std::string(kPageJs)});
}

}  // namespace

std::string PageJson(const diagnose::Diagnosis& diagnosis, const record::Recording& recording) {
  return PrintableJson(PageData(diagnosis, recording)).dump();
}

std::string PaletteJson() { return PaletteData().dump(); }

std::string ToHtml(const diagnose::Diagnosis& diagnosis, const record::Recording& recording) {
  return ToHtml(diagnosis, recording, nlohmann::ordered_json::object());
}

std::string ToHtml(const diagnose::Diagnosis& diagnosis, const record::Recording& recording,
                   const nlohmann::ordered_json& more) {
  nlohmann::ordered_json data = PageData(diagnosis, recording);
  data.update(more);
  return FileOf(diagnosis, std::move(data));
}

std::string HtmlOfPage(const diagnose::Diagnosis& diagnosis, const std::string& page_json) {
  return FileOf(diagnosis, nlohmann::ordered_json::parse(page_json));
}

}  // namespace fullbore::report
