// fullbore alerts: the history of a run's alerts, and what belongs to it.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "base/print.h"
#include "cli/alerts_table.h"
#include "cli/example_first.h"
#include "cli/output.h"
#include "cli/results.h"
#include "cli/subcommand.h"
#include "record/alert_log.h"
#include "record/run_of_nodes.h"
#include "record/run_reader.h"
#include "watch/alert/rules_file.h"
#include "watch/notify/sentinel.h"

namespace fullbore::cli {

namespace {

struct Flags {
  std::string run;
  std::string directory = kDefaultRunsDirectory;
  ResultFile json{"--json", kJsonResult};
  bool force = false;
  bool defaults = false;
};

int List(Flags& flags) {
  if (flags.defaults) {
    PrintLaidOut(stdout, watch::kDefaultRules);
    return 0;
  }
  const InputFiles inputs = InputsNamed(flags.directory, {flags.run});
  if (auto judged = JudgeResults({&flags.json}, inputs, flags.force, flags.directory); !judged)
    return Fail(judged.error(), kExitUsage);
  const auto path = FindRun(flags.directory, flags.run);
  if (!path) return Fail(path.error(), StatusOf(path.error()));
  if (record::IsRunOfNodes(*path)) return Fail(AlertsAreOfMachines(*path), kExitUsage);
  const auto run = record::ReadRunSummary(*path);
  if (!run) return Fail(run.error(), StatusOf(run.error()));
  const auto rows = record::ReadAlerts(*path);
  if (!rows) return Fail(rows.error(), StatusOf(rows.error()));
  record::Recording named;
  named.id = run->id;
  named.path = run->path;
  named.stages = run->stages;
  named.wall_offset_ns = run->wall_begin_ns - run->stages.front().begin_ns;
  std::vector<watch::Alert> alerts;
  for (const record::AlertRow& row : *rows) alerts.push_back(watch::AlertOf(row));
  if (flags.json.wanted()) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const watch::Alert& alert : alerts)
      list.push_back(watch::ToJson(alert, watch::OriginOf(named, alert.stage), std::nullopt));
    if (auto written = WriteJson(flags.json, list); !written) return Fail(written.error(), kExitFailure);
  } else if (alerts.empty()) {
    Print(stdout,
          "no alert fired in {}; rules are given with run --rules FILE: fullbore alerts --defaults prints "
          "some\n",
          run->id);
  } else {
    PrintAlerts(alerts, watch::OriginOf(named, 0), std::nullopt);
  }
  return 0;
}

Handler Define(CLI::App& app, const Invocation& invocation) {
  auto flags = std::make_shared<Flags>();
  app.require_subcommand(0, 1);
  using Part = std::pair<CLI::App*, Handler>;
  auto parts = std::make_shared<std::vector<Part>>();
  for (const Subcommand* command : {&kAlertsTest, &kAlertsWatch}) {
    CLI::App* sub = app.add_subcommand(command->name, command->summary);
    sub->formatter(std::make_shared<ExampleFirst>(command->example));
    parts->emplace_back(sub, command->define(*sub, invocation));
  }
  app.add_option("RUN", flags->run,
                 "A run, as for `fullbore explain` (default: the newest): what fired in it");
  app.add_flag("--defaults", flags->defaults, "Print the rules that are built in, as a file to start from");
  app.add_option("-o,--output", flags->directory, "Where runs are kept")
      ->type_name("DIR")
      ->default_str(kDefaultRunsDirectory);
  AddResult(app, flags->json, "Write the history to this file");
  AddForce(app, flags->force);
  return [flags, parts] {
    for (const auto& [sub, handler] : *parts) {
      if (sub->parsed()) return handler();
    }
    return List(*flags);
  };
}

}  // namespace

const Subcommand kAlerts = {"alerts", "What fired while a run was watched; rules, and how to try them",
                            "fullbore alerts --defaults > alerts.toml", Define};

}  // namespace fullbore::cli
