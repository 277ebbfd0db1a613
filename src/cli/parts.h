// A subcommand that only has parts: `fullbore loader bench`, `fullbore fleet report`.
#pragma once

#include <vector>

#include "cli/subcommand.h"

namespace fullbore::cli {

// Runs the part that was named; without one, prints the help, for exit status 2. `parts` outlives the app.
Handler DefineParts(CLI::App& app, const Invocation& invocation, const std::vector<const Subcommand*>& parts);

}  // namespace fullbore::cli
