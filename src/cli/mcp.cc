#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "base/ending_signals.h"
#include "base/print.h"
#include "cli/output.h"
#include "cli/subcommand.h"
#include "mcp/loop.h"

namespace fullbore::cli {

namespace {

struct Flags {
  bool allow_run = false;
  std::vector<std::string> allowed;
  std::string directory = kDefaultRunsDirectory;
};

int Serve(const Flags& flags) {
  auto paths = mcp::AllowedPaths::Make(flags.allowed);
  if (!paths) return Fail(paths.error(), kExitUsage);
  if (isatty(STDIN_FILENO) != 0) {
    Print(stderr,
          "fullbore mcp: an agent speaks with it over standard input and output; docs/agents.md says how to "
          "register it\n");
  }
  (void)signal(SIGPIPE, SIG_IGN);  // a client that is gone
  const UniqueFd signals = HeldEndingSignals();
  mcp::ProcessStarter starter("/proc/self/exe");
  mcp::Serve({FULLBORE_VERSION, flags.allow_run, {std::move(*paths), flags.directory, FindRun}}, starter,
             STDIN_FILENO, STDOUT_FILENO, signals.get());
  return 0;
}

Handler Define(CLI::App& app, const Invocation&) {
  auto flags = std::make_shared<Flags>();
  app.add_flag("--allow-run", flags->allow_run,
               "Start commands that the agent names. Else each needs your confirmation in the client, where\n"
               "that can ask you");
  app.add_option("--allow-path", flags->allowed,
                 "The agent may also name files below this directory, besides the working directory; may be\n"
                 "given several times")
      ->type_name("DIR")
      ->allow_extra_args(false);
  app.add_option("-o,--output", flags->directory, "Where runs are kept")
      ->type_name("DIR")
      ->default_str(kDefaultRunsDirectory);
  return [flags] { return Serve(*flags); };
}

}  // namespace

const Subcommand kMcp = {"mcp", "Serve coding agents: the same answers, by the Model Context Protocol",
                         "fullbore mcp\n  claude mcp add fullbore -- fullbore mcp --allow-run", Define};

}  // namespace fullbore::cli
