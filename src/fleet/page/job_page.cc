#include "fleet/page/job_page.h"

#include "fleet/job_json.h"
#include "fleet/job_terminal.h"
#include "fleet/page/page_sources.h"
#include "fleet/words.h"
#include "report/page_file.h"
#include "report/page_sources.h"

namespace fullbore::fleet {

namespace {

using Json = nlohmann::ordered_json;

// What the page draws: the JSON for others, and the words that the terminal has as well.
Json PageData(const Job& job) {
  Json data = ToJson(job);
  for (size_t i = 0; i < job.bars.size(); ++i) data["bars"][i]["says"] = NameForPeople(job.bars[i]);
  for (size_t i = 0; i < job.runs.size(); ++i) {
    data["runs"][i]["how"] = HowItEnded(job.runs[i]);
    data["runs"][i]["badly"] = job.runs[i].EndedBadly();
  }
  data["asked"] = Json::array();
  for (const Asked& row : AskedAndUsed(job.use))
    data["asked"].push_back({{"what", row.what}, {"given", row.given}, {"used", row.used}});
  return data;
}

}  // namespace

std::string ToHtml(const Job& job) {
  const std::string title = job.id.empty() ? "run: " + job.runs.back().id : "job: " + job.id;
  return report::PageFile({title, ToText(job, true), PageData(job),
                           std::string(report::kPageCss) + std::string(kFleetCss), std::string(kJobJs)});
}

}  // namespace fullbore::fleet
