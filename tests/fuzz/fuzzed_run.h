// A run file through everything that reads one: the list of runs, the diagnosis of each stage, and all
// reports.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "explain/diagnose/compare.h"
#include "explain/diagnose/diagnose.h"
#include "record/run_reader.h"
#include "report/html.h"
#include "report/json.h"
#include "report/terminal.h"

namespace fullbore::fuzz {

inline void ThroughAllReports(const std::string& path) {
  const auto summary = record::ReadRunSummary(path);
  const auto run = record::ReadRun(path);
  FB_CHECK(summary.ok() || !run.ok());  // what can be explained can be listed
  if (!run) return;
  std::vector<diagnose::Diagnosis> stages;
  for (const record::Stage& stage : run->stages) {
    stages.push_back(diagnose::Diagnose(*run, stage.name));
    constexpr size_t kStages = 8;  // more would take the same path
    if (stages.size() == kStages) break;
  }
  for (const report::TerminalStyle& style :
       {report::TerminalStyle{100, false, true}, report::TerminalStyle{40, true, false}}) {
    (void)report::ToTerminal(stages, style, {"report.html", "fullbore explain x"});
  }
  for (const diagnose::Diagnosis& stage : stages) {
    const std::string json = report::ToJsonText(stage);
    FB_CHECK(nlohmann::json::accept(json));
    (void)report::ToHtml(stage, *run);
    (void)diagnose::Compare(stages.front(), stage);
  }
}

}  // namespace fullbore::fuzz
