#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "base/print.h"
#include "cli/example_first.h"
#include "cli/output.h"
#include "cli/subcommand.h"

namespace fullbore::cli {

namespace {

// A new one is a file loader_NAME.cc, a line in subcommand.h and one here.
const std::vector<const Subcommand*>& LoaderCommands() {
  static const std::vector<const Subcommand*> all = {
      &kLoaderBench,
      &kLoaderPack,
  };
  return all;
}

Handler Define(CLI::App& app, const Invocation& invocation) {
  using Part = std::pair<CLI::App*, Handler>;
  auto parts = std::make_shared<std::vector<Part>>();
  app.require_subcommand(0, 1);
  for (const Subcommand* command : LoaderCommands()) {
    CLI::App* sub = app.add_subcommand(command->name, command->summary);
    sub->formatter(std::make_shared<ExampleFirst>(command->example));
    parts->emplace_back(sub, command->define(*sub, invocation));
  }
  return [&app, parts] {
    for (const auto& [sub, handler] : *parts) {
      if (sub->parsed()) return handler();
    }
    PrintLaidOut(stdout, app.help());
    return kExitUsage;
  };
}

}  // namespace

const Subcommand kLoader = {"loader", "Work on the data that the loader reads: measure it, pack it",
                            "fullbore loader pack photos/train packed", Define};

}  // namespace fullbore::cli
