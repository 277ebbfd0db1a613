// fullbore completion: the scripts that make shells complete our command line.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "base/print.h"
#include "cli/completion_scripts.h"
#include "cli/output.h"
#include "cli/subcommand.h"

namespace fullbore::cli {

namespace {

int PrintScript(const std::string& shell) {
  const std::string_view script = shell == "bash"   ? kBashScript
                                  : shell == "zsh"  ? kZshScript
                                  : shell == "fish" ? kFishScript
                                                    : std::string_view();
  if (!script.empty()) return PrintLaidOut(stdout, script), 0;
  return Fail({ErrorCode::kInvalidArgument,
               shell.empty() ? "completion: no shell is named"
                             : fmt::format("completion: there is no script for '{}'", shell),
               "fullbore completion bash, zsh or fish"},
              kExitUsage);
}

Handler Define(CLI::App& app, const Invocation&) {
  auto shell = std::make_shared<std::string>();
  app.add_option("SHELL", *shell, "bash, zsh or fish; the script says where it belongs");
  return [shell] { return PrintScript(*shell); };
}

}  // namespace

const Subcommand kCompletion = {"completion", "Print the script that makes a shell complete this command",
                                "eval \"$(fullbore completion bash)\"", Define};

}  // namespace fullbore::cli
