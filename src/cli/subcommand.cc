#include "cli/subcommand.h"

namespace fullbore::cli {

const std::vector<const Subcommand*>& AllSubcommands() {
  static const std::vector<const Subcommand*> all = {
      &kRun,   &kTune, &kMeasure, &kExplain, &kCompare, &kExport, &kLoader, &kRuns, &kFleet,
      &kAgent, &kPlan, &kServe,   &kTop,     &kAlerts,  &kMcp,    &kDoctor, &kHelp, &kCompletion};
  return all;
}

}  // namespace fullbore::cli
