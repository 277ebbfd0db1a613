#include "cli/parts.h"

namespace fullbore::cli {

namespace {

Handler Define(CLI::App& app, const Invocation& invocation) {
  return DefineParts(app, invocation, {&kFleetCollect, &kFleetReport, &kFleetJob, &kFleetNodes});
}

}  // namespace

const Subcommand kFleet = {"fleet",
                           "What the runs of a team or a cluster waste, and which edits bring most back",
                           "fullbore fleet report --by user", Define};

}  // namespace fullbore::cli
