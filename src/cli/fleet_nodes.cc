#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "base/print.h"
#include "base/secrets.h"
#include "base/text.h"
#include "cli/fleet_store.h"
#include "cli/output.h"
#include "cli/results.h"
#include "cli/subcommand.h"
#include "fleet/nodes.h"

namespace fullbore::cli {

namespace {

struct Flags {
  StoreFlags store;
  ResultFile json{"--json", kJsonResult};
  bool force = false;
};

std::string Ratio(double ratio) { return fmt::format("{:.2f}", ratio); }

void PrintTable(const std::vector<fleet::NodeHistory>& histories) {
  Print(stdout, "  {:<24}{:>6}{:>12}{:>10}{:>16}\n", "machine", "times", "below", "median", "middle half");
  for (const fleet::NodeHistory& history : histories) {
    Print(stdout, "  {:<24}{:>6}{:>12}{:>10}{:>16}{}\n",
          Elide(Printable(history.node, LocaleIsUtf8()), 23, LocaleIsUtf8()), history.comparisons,
          history.below, Ratio(history.median), Ratio(history.low) + " to " + Ratio(history.high),
          history.slow ? "  slow" : "");
  }
  const auto slow = std::ranges::count(histories, true, &fleet::NodeHistory::slow);
  Print(
      stdout,
      "\n  each time, its rate over that of the same command just before and after on other machines; below: slower\n"
      "  than both; {}\n",
      slow == 0 ? "none is slower than chance explains"
                : fmt::format("{} {} slower than chance explains", slow, slow == 1 ? "is" : "are"));
}

int Run(Flags& flags) {
  InputFiles inputs;
  inputs.Add(flags.store.target);
  if (auto judged = JudgeResults({&flags.json}, inputs, flags.force); !judged)
    return Fail(judged.error(), kExitUsage);
  const auto range = RangeOf(flags.store);
  if (!range) return Fail(range.error(), StatusOf(range.error()));
  auto store = fleet::Store::OpenForReading(flags.store.target);
  if (!store) return Fail(store.error(), StatusOf(store.error()));
  const auto runs = store->Runs(*range);
  if (!runs) return Fail(runs.error(), StatusOf(runs.error()));
  const auto histories = fleet::HistoriesOf(*runs);
  if (flags.json.wanted()) {
    nlohmann::ordered_json json = {{"schema", "fullbore.fleet_nodes/1"},
                                   {"database", MaskUrl(flags.store.target)},
                                   {"nodes", nlohmann::ordered_json::array()}};
    for (const fleet::NodeHistory& each : histories) {
      json["nodes"].push_back({{"name", each.node},
                               {"comparisons", each.comparisons},
                               {"below", each.below},
                               {"above", each.above},
                               {"works", each.works},
                               {"median", each.median},
                               {"low", each.low},
                               {"high", each.high},
                               {"slow", each.slow}});
    }
    if (auto written = WriteJson(flags.json, json); !written) return Fail(written.error(), kExitFailure);
  }
  if (AnyToStandardOutput({&flags.json})) return 0;
  if (histories.empty())
    Print(
        stdout,
        "too few runs to compare: it takes a command that three machines ran, one of them five times with a run\n"
        "elsewhere before and after\n");
  else
    PrintTable(histories);
  return 0;
}

Handler Define(CLI::App& app, const Invocation&) {
  auto flags = std::make_shared<Flags>();
  AddStore(app, flags->store);
  AddResult(app, flags->json, "Write the machines to this file");
  AddForce(app, flags->force);
  return [flags] { return Run(*flags); };
}

}  // namespace

const Subcommand kFleetNodes = {"nodes", "Machines that do the same work more slowly than others do",
                                "fullbore fleet nodes --since 30d", Define};

}  // namespace fullbore::cli
