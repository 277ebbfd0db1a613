#include "report/compared_page.h"

#include <nlohmann/json.hpp>

#include "report/compared_text.h"
#include "report/html.h"
#include "report/page_file.h"
#include "report/page_sources.h"

namespace fullbore::report {

namespace {

using Json = nlohmann::ordered_json;

constexpr int kColumnsWithoutScripts = 100;

Json PageData(const Compared& compared, const ComparedTable& table) {
  Json data = {{"palette", Json::parse(PaletteJson())}, {"runs", table.runs}, {"shares", Json::array()}};
  for (const diagnose::Diagnosis& run : compared.runs) data["shares"].push_back(run.shares);
  for (const ComparedSection& section : table.sections) {
    Json rows = Json::array();
    for (const ComparedRow& row : section.rows) rows.push_back({{"label", row.label}, {"cells", row.cells}});
    data["sections"].push_back({{"title", section.title}, {"rows", std::move(rows)}});
  }
  return data;
}

}  // namespace

std::string ToHtml(const Compared& compared) {
  const ComparedTable table = TableOf(compared);
  return PageFile({std::to_string(compared.runs.size()) + " runs compared",
                   ComparedForTerminal(table, kColumnsWithoutScripts, true), PageData(compared, table),
                   std::string(kPageCss) + std::string(kComparedCss), std::string(kComparedJs)});
}

}  // namespace fullbore::report
