#include "cli/next_step.h"

#include <fmt/format.h>

#include <map>

#include "base/command_line.h"
#include "base/text.h"
#include "cli/subcommand.h"
#include "tune/knob/knob.h"

namespace fullbore::cli {

namespace {

using nlohmann::ordered_json;

constexpr char kCompareWithCommit[] = "fullbore compare --at HEAD -- CMD";

std::string TextIn(const ordered_json& object, const char* name) {
  const auto found = object.is_object() ? object.find(name) : object.end();
  return object.is_object() && found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

const ordered_json& MemberOf(const ordered_json& object, const char* name) {
  static const ordered_json nothing;
  return object.is_object() && object.contains(name) ? object.at(name) : nothing;
}

std::string Explain(const std::string& run) {
  return "fullbore explain " + (run.empty() ? std::string("last") : ShellQuote(run));
}

// "num_workers=4" of "DataLoader(num_workers=4)", where `compare` can make that change from outside.
std::string SettingIn(const std::string& change) {
  const size_t begin = change.find('('), end = change.rfind(')');
  if (begin == std::string::npos || end == std::string::npos || end < begin) return "";
  const std::string setting = change.substr(begin + 1, end - begin - 1);
  const size_t equals = setting.find('=');
  const bool is_one = equals != std::string::npos && setting.find_first_of(", ('\"") == std::string::npos;
  return is_one && tune::KnobNamed(setting.substr(0, equals)) != nullptr ? setting : "";
}

// Its advice is tried where that needs no edit, and else read.
std::string AfterReport(const ordered_json& report) {
  const ordered_json& findings = MemberOf(report, "findings");
  if (!findings.is_array() || findings.empty()) return "fullbore tune -- CMD";
  const std::string setting = SettingIn(TextIn(findings[0], "change"));
  return setting.empty() ? "fullbore help " + TextIn(findings[0], "id")
                         : fmt::format("fullbore compare --set {} -- CMD", setting);
}

std::string AfterComparison(const ordered_json& comparison) {
  const bool told = MemberOf(comparison, "significant") == true;
  return told ? Explain(TextIn(comparison, "after")) : kCompareWithCommit;
}

std::string LastRunOf(const ordered_json& contest, const std::string& side) {
  std::string run;
  for (const ordered_json& trial : MemberOf(contest, "trials")) {
    if (TextIn(trial, "side") == side) run = TextIn(trial, "run");
  }
  return run;
}

std::string AfterContest(const ordered_json& contest) {
  const std::string verdict = TextIn(contest, "verdict");
  const std::string before = LastRunOf(contest, "baseline"), after = LastRunOf(contest, "candidate");
  if (MemberOf(MemberOf(contest, "claim"), "holds") == true) return Explain(after);
  if (verdict == "slower" || before.empty() || after.empty()) return Explain(before);
  return fmt::format("fullbore compare {} {}", ShellQuote(before), ShellQuote(after));
}

std::string AfterMeasure(const ordered_json& trial) {
  const std::string run = TextIn(trial, "run");
  return run.empty() ? "fullbore doctor" : Explain(run);
}

std::string AfterTune(const ordered_json& answer) {
  std::vector<std::string> command;
  for (const ordered_json& word : MemberOf(answer, "command")) command.push_back(word.get<std::string>());
  const ordered_json& recommended = MemberOf(answer, "recommended");
  std::string settings;
  for (const auto& [name, value] : MemberOf(recommended, "settings").items())
    settings += fmt::format(
        " --set {}", ShellQuote(name + "=" + (value.is_string() ? value.get<std::string>() : value.dump())));
  return settings.empty() ? Explain("")
                          : fmt::format("fullbore compare{} -- {}", settings, ShellLine(command));
}

std::string AfterPlan(const ordered_json& plan) {
  return TextIn(plan, "currency").empty() ? "fullbore plan --prices-example" : Explain("");
}

std::string AfterJob(const ordered_json& job) {
  const ordered_json& runs = MemberOf(job, "runs");
  return Explain(runs.is_array() && !runs.empty() ? TextIn(runs.back(), "id") : "");
}

// What reads the database that the result is of.
std::string AfterFleet(const std::string& command, const ordered_json& result) {
  const std::string database = TextIn(result, "database");
  return database.empty() || database == kFleetFile ? command : command + " --from " + ShellQuote(database);
}

using After = std::string (*)(const ordered_json& result);

const std::map<std::string, After>& AllResults() {
  using Json = ordered_json;
  static const std::map<std::string, After> all = {
      {"fullbore.report/1", AfterReport},
      {"fullbore.comparison/1", AfterComparison},
      {"fullbore.contest/1", AfterContest},
      {"fullbore.measure/1", AfterMeasure},
      {"fullbore.tune/1", AfterTune},
      {"fullbore.plan/1", AfterPlan},
      {"fullbore.fleet_job/1", AfterJob},
      {"fullbore.runs/1", [](const Json& run) { return Explain(TextIn(run, "id")); }},
      {"fullbore.doctor/1", [](const Json&) { return std::string("fullbore run -- CMD"); }},
      {"fullbore.sections/1", [](const Json&) { return std::string("fullbore explain TRACE"); }},
      {"fullbore.memory/1",
       [](const Json& memory) {
         return fmt::format("fullbore explain {} --what-if batch=2x", ShellQuote(TextIn(memory, "file")));
       }},
      {"fullbore.fleet/1", [](const Json& report) { return AfterFleet("fullbore fleet job JOB", report); }},
      {"fullbore.fleet_collect/1", [](const Json& of) { return AfterFleet("fullbore fleet report", of); }},
      {"fullbore.fleet_nodes/1", [](const Json& of) { return AfterFleet("fullbore fleet report", of); }},
      {"fullbore.loader_bench/1", [](const Json&) { return std::string("fullbore run -- CMD"); }},
      {"fullbore.loader_bench_script/1", [](const Json&) { return std::string("fullbore run -- CMD"); }},
      {"fullbore.loader_pack/1", [](const Json&) { return std::string("fullbore loader bench OUTPUT"); }},
      {"fullbore.alerts_test/1", [](const Json&) { return std::string("fullbore run --rules FILE -- CMD"); }},
  };
  return all;
}

}  // namespace

std::string NextStepOf(const ordered_json& result) {
  const auto found = AllResults().find(TextIn(result, "schema"));
  return found == AllResults().end() ? "" : found->second(result);
}

ordered_json WithNextStep(ordered_json result) {
  if (result.is_array()) {
    for (ordered_json& each : result) each = WithNextStep(std::move(each));
  } else if (const std::string next = NextStepOf(result); !next.empty()) {
    result["next_step"] = next;
  }
  return result;
}

}  // namespace fullbore::cli
