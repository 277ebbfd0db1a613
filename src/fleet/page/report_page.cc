#include "fleet/page/report_page.h"

#include <fmt/format.h>

#include "base/text.h"
#include "fleet/page/page_sources.h"
#include "fleet/report_json.h"
#include "fleet/words.h"
#include "report/page_file.h"
#include "report/page_sources.h"

namespace fullbore::fleet {

namespace {

using Json = nlohmann::ordered_json;

Json PageData(const Report& report, const ReportFor& whom) {
  Json data = ToJson(report);
  for (size_t i = 0; i < report.parts.size(); ++i)
    data["parts"][i]["says"] = NameForPeople(report.parts[i].kind);
  for (size_t i = 0; i < report.asked.size(); ++i) {
    const OverAskedJobs& each = report.asked[i];
    data["asked"][i]["given_says"] = AmountText(each.what, each.given);
    data["asked"][i]["used_says"] = each.what == "GPUs" ? "none" : AmountText(each.what, each.used);
  }
  data["for"] = whom.user;
  Json& fixes = data["fixes"];
  while (!whom.user.empty() && fixes.size() > kMostFixesOfALetter) fixes.erase(fixes.size() - 1);
  return data;
}

// For browsers without scripts.
std::string TextOf(const Report& report, const ReportFor& whom) {
  std::string text = fmt::format("{}{}: {} device hours\n\n", Plural(report.runs, "run"),
                                 whom.user.empty() ? "" : " of " + whom.user, HoursText(report.given_ns));
  for (const PartTotal& part : report.parts) {
    text += fmt::format("{}{}: {} h\n", NameForPeople(part.kind), part.cause.empty() ? "" : ", " + part.cause,
                        HoursText(part.device_ns));
  }
  size_t told = 0;
  for (const Fix& fix : report.fixes) {
    if (!whom.user.empty() && told++ == kMostFixesOfALetter) break;
    text += fmt::format("\n{} would bring back {} h ({} to {}): {}\n",
                        fix.change.empty() ? fix.finding : fix.change, HoursText(fix.expected_ns),
                        HoursText(fix.low_ns), HoursText(fix.high_ns), fix.title);
  }
  return text;
}

}  // namespace

std::string ToHtml(const Report& report, const ReportFor& whom) {
  const std::string title = whom.user.empty() ? "where the device hours went" : "for " + whom.user;
  return report::PageFile({title, TextOf(report, whom), PageData(report, whom),
                           std::string(report::kPageCss) + std::string(kFleetCss), std::string(kReportJs)});
}

}  // namespace fullbore::fleet
