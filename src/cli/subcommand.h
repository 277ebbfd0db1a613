// A subcommand: its name, help, flags and handler, declared together, one file per subcommand. The table in
// main.cc lists them.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;  // <CLI/CLI.hpp> takes ten seconds to compile: only those who define options include it
}

namespace fullbore::cli {

// What follows "--" on a command line: the command to run. Cut off before the flags are parsed, so that its
// own flags are never mistaken for ours.
struct Invocation {
  std::vector<std::string> command;
  bool has_separator = false;
};

using Handler = std::function<int()>;  // returns the exit status

struct Subcommand {
  const char* name;
  const char* summary;  // one line
  const char* example;  // the first thing its help shows
  Handler (*define)(CLI::App& app, const Invocation& invocation);
};

inline constexpr int kExitUsage = 2;
inline constexpr int kExitFailure = 1;
inline constexpr int kExitCondition = 3;  // of compare: a condition of --fail-if holds

extern const Subcommand kAlerts, kRun, kTune, kMeasure, kExplain, kRuns, kServe, kCompare, kExport, kLoader,
    kFleet, kAgent, kPlan, kTop, kMcp, kDoctor, kHelp, kCompletion;
extern const Subcommand kLoaderBench, kLoaderPack;                            // the parts of `loader`
extern const Subcommand kAlertsTest, kAlertsWatch;                            // of `alerts`
extern const Subcommand kFleetCollect, kFleetReport, kFleetJob, kFleetNodes;  // of `fleet`
inline constexpr char kFleetFile[] = ".fullbore/fleet.db";
const std::vector<const Subcommand*>& AllSubcommands();

}  // namespace fullbore::cli
