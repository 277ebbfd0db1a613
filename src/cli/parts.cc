#include "cli/parts.h"

#include <CLI/CLI.hpp>
#include <memory>
#include <utility>

#include "base/print.h"
#include "cli/example_first.h"
#include "cli/output.h"

namespace fullbore::cli {

Handler DefineParts(CLI::App& app, const Invocation& invocation,
                    const std::vector<const Subcommand*>& parts) {
  using Part = std::pair<CLI::App*, Handler>;
  auto defined = std::make_shared<std::vector<Part>>();
  app.require_subcommand(0, 1);
  for (const Subcommand* command : parts) {
    CLI::App* sub = app.add_subcommand(command->name, command->summary);
    sub->formatter(std::make_shared<ExampleFirst>(command->example));
    defined->emplace_back(sub, command->define(*sub, invocation));
  }
  return [&app, defined] {
    for (const auto& [sub, handler] : *defined) {
      if (sub->parsed()) return handler();
    }
    PrintLaidOut(stdout, app.help());
    return kExitUsage;
  };
}

}  // namespace fullbore::cli
