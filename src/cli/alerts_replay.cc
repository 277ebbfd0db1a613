// fullbore alerts test: what the rules of a file would have said of a finished run, and when.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <memory>

#include "base/clock.h"
#include "base/print.h"
#include "base/text.h"
#include "cli/alert_rules.h"
#include "cli/alerts_table.h"
#include "cli/output.h"
#include "cli/results.h"
#include "cli/subcommand.h"
#include "record/run_reader.h"
#include "watch/alert/evaluator.h"
#include "watch/alert/rules_file.h"
#include "watch/run_index.h"

namespace fullbore::cli {

namespace {

struct Flags {
  std::string rules, run;
  std::string directory = kDefaultRunsDirectory;
  ResultFile json{"--json", kJsonResult};
  bool force = false;
};

// One for each that fired; how often one was near is counted.
struct Outcome {
  std::vector<watch::Alert> alerts;
  std::map<std::string, int> nearly;  // by rule: pending, but over before its time
};

Outcome OutcomeOf(const std::vector<watch::Transition>& changes) {
  Outcome outcome;
  for (const watch::Transition& change : changes) {
    switch (change.to) {
      case watch::Transition::To::kPending:
        break;
      case watch::Transition::To::kInactive:
        ++outcome.nearly[change.alert.rule];
        break;
      case watch::Transition::To::kFiring:
        outcome.alerts.push_back(change.alert);
        break;
      case watch::Transition::To::kResolved:
        for (watch::Alert& alert : outcome.alerts) {
          if (alert.rule == change.alert.rule && alert.fired_ns == change.alert.fired_ns)
            alert = change.alert;
        }
        break;
    }
  }
  return outcome;
}

nlohmann::ordered_json ToJson(const Outcome& outcome, const record::Recording& recording,
                              const watch::RuleSet& rules) {
  nlohmann::ordered_json json = {{"schema", "fullbore.alerts_test/1"},
                                 {"run", recording.id},
                                 {"alerts", nlohmann::ordered_json::array()}};
  for (const watch::Alert& alert : outcome.alerts)
    json["alerts"].push_back(watch::ToJson(alert, watch::OriginOf(recording, alert.stage), rules.price));
  json["rules"] = nlohmann::ordered_json::array();
  for (const watch::Rule& rule : rules.rules) {
    const auto nearly = outcome.nearly.find(rule.name);
    const auto fired = std::ranges::count(outcome.alerts, rule.name, &watch::Alert::rule);
    json["rules"].push_back({{"alert", rule.name},
                             {"fired", fired},
                             {"nearly", nearly == outcome.nearly.end() ? 0 : nearly->second}});
  }
  return json;
}

void PrintOutcome(const Outcome& outcome, const record::Recording& recording, const watch::RuleSet& rules) {
  const watch::Origin origin = watch::OriginOf(recording, recording.stages.back().id);
  if (outcome.alerts.empty())
    Print(stdout, "in {}, none of {} rules would have fired\n", recording.id, rules.rules.size());
  else
    PrintAlerts(outcome.alerts, origin, rules.price);
  for (const auto& [rule, times] : outcome.nearly) {
    Print(stdout, "nearly: '{}' began to hold {} and was over before its time\n", rule,
          times == 1 ? std::string("once") : fmt::format("{} times", times));
  }
}

int Test(Flags& flags) {
  InputFiles inputs = InputsNamed(flags.directory, {flags.run});
  inputs.Add(flags.rules);
  if (auto judged = JudgeResults({&flags.json}, inputs, flags.force, flags.directory); !judged)
    return Fail(judged.error(), kExitUsage);
  const auto rules = flags.rules == "default" ? watch::ParseRules(watch::kDefaultRules, "defaults")
                                              : watch::ReadRules(flags.rules);
  if (!rules) return Fail(rules.error(), kExitUsage);
  const auto path = FindRun(flags.directory, flags.run);
  if (!path) return Fail(path.error(), StatusOf(path.error()));
  const auto recording = record::ReadRun(*path);
  if (!recording) return Fail(recording.error(), StatusOf(recording.error()));
  const record::Stage& last = recording->stages.back();
  const bool cut_off = last.state == record::StageState::kRunning && watch::IsSilent(*path, WallNs());
  const Outcome outcome = OutcomeOf(watch::Replay(*recording, *rules, cut_off));
  if (!flags.json.wanted()) {
    PrintOutcome(outcome, *recording, *rules);
  } else if (auto written = WriteJson(flags.json, ToJson(outcome, *recording, *rules)); !written) {
    return Fail(written.error(), kExitFailure);
  }
  return 0;
}

Handler Define(CLI::App& app, const Invocation&) {
  auto flags = std::make_shared<Flags>();
  app.add_option("FILE", flags->rules, kRulesHelp)->required();
  app.add_option("RUN", flags->run, "A run, as for `fullbore explain` (default: the newest)");
  app.add_option("-o,--output", flags->directory, "Where runs are kept")
      ->type_name("DIR")
      ->default_str(kDefaultRunsDirectory);
  AddResult(app, flags->json, "Write the alerts to this file");
  AddForce(app, flags->force);
  return [flags] { return Test(*flags); };
}

}  // namespace

const Subcommand kAlertsTest = {"test", "Replay a finished run: what would have fired, and when",
                                "fullbore alerts test alerts.toml last", Define};

}  // namespace fullbore::cli
