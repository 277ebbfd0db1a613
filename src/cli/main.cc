#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <exception>
#include <new>
#include <optional>

#include "base/nearest.h"
#include "base/print.h"
#include "cli/completions.h"
#include "cli/example_first.h"
#include "cli/man_pages.h"
#include "cli/output.h"
#include "cli/peers.h"
#include "cli/results.h"
#include "cli/skill.h"
#include "cli/subcommand.h"

namespace fullbore::cli {

namespace {

using Apps = std::vector<CLI::App*>;

int UnknownSubcommand(const std::string& program, const std::string& word,
                      const std::optional<std::string>& meant) {
  return Fail({ErrorCode::kInvalidArgument, fmt::format("'{}' is not a command of {}", word, program),
               meant ? fmt::format("did you mean `{}`?", *meant) : program + " --help lists the commands"},
              kExitUsage);
}

std::optional<std::string> NearestSubcommand(const Apps& all, const std::string& program,
                                             const std::string& word) {
  std::vector<std::string> names;
  for (const CLI::App* sub : all) names.push_back(sub->get_name());
  const auto meant = Nearest(word, names);
  return meant ? std::optional(program + " " + *meant) : std::nullopt;
}

// What was meant: where no option takes a word, the one that is misspelt; the "--" that is missing before a command; or
// a file whose name is missing.
std::string HintFor(const CLI::App& app, const std::vector<std::string>& words, const std::string& problem) {
  const CLI::App* within = &app;
  std::string program = "fullbore";
  while (!within->get_subcommands().empty()) {
    within = within->get_subcommands().front();
    program += " " + within->get_name();
  }
  if (const auto meant = WithSeparator(words, within->remaining()))
    return fmt::format("a command goes after --: did you mean `{}`?", *meant);
  std::vector<std::string> names;
  for (const CLI::Option* option : within->get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  for (const std::string& word : within->remaining()) {
    const std::string name = word.substr(0, word.find('='));
    const auto meant = name.starts_with("--") ? Nearest(name, names) : std::nullopt;
    if (meant) return fmt::format("did you mean {}?", *meant);
  }
  if (const std::string hint = HintForResults(*within, problem); !hint.empty()) return hint;
  return program + " --help lists the options; a command to run goes after --";
}

// Checked before CLI11 parses, whose message would name neither the commands nor the one that was meant.
std::optional<int> MistypedSubcommand(CLI::App& app, const std::vector<std::string>& words,
                                      const std::vector<std::string>& command) {
  CLI::App* within = &app;
  std::string program = "fullbore";
  for (const std::string& word : words) {
    const Apps all = within->get_subcommands([](CLI::App*) { return true; });
    if (all.empty() || word.empty() || word[0] == '-') break;
    const auto found =
        std::find_if(all.begin(), all.end(), [&](const CLI::App* sub) { return sub->get_name() == word; });
    // `alerts RUN`: another word is not a part of it.
    if (found == all.end() &&
        !within->get_options([](const CLI::Option* option) { return option->get_positional(); }).empty())
      break;
    if (found == all.end()) {
      const auto meant = within == &app ? CommandLineMeant(words, command) : std::nullopt;
      return UnknownSubcommand(program, word, meant ? meant : NearestSubcommand(all, program, word));
    }
    within = *found;
    program += " " + word;
  }
  return std::nullopt;
}

// What scripts of ours ask the program, not people: it stands in no help.
std::optional<int> HiddenCall(const CLI::App& app, const std::vector<std::string>& words) {
  if (words.empty()) return std::nullopt;
  if (words[0] == kCompleteCall) return PrintCompletions(app, {words.begin() + 1, words.end()});
  if (words[0] == kManPagesCall && words.size() == 2) return WriteManPages(app, words[1]);
  if (words[0] == kSkillCall) return PrintLaidOut(stdout, SkillPage()), 0;
  return std::nullopt;
}

// If a standard stream is closed, a file that we open would take its number, and messages would end up in
// that file. For us only: a command that we start finds the stream closed, as it was.
void HoldStandardDescriptors() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(fd, F_GETFD) == -1) (void)open("/dev/null", O_RDWR | O_CLOEXEC);
  }
}

int Main(int argc, char** argv) {
  Invocation invocation;
  std::vector<std::string> words(argv + 1, argv + argc);
  const auto separator = std::find(words.begin(), words.end(), "--");
  if (separator != words.end()) {
    invocation.has_separator = true;
    invocation.command.assign(separator + 1, words.end());
    words.erase(separator, words.end());
  }
  CLI::App app(
      "Finds the narrowest pipe of a training run, says what it costs, and proves the gain.\n\n"
      "  fullbore run -- python train.py      # in front of the command you use anyway");
  app.formatter(std::make_shared<InColumns>());
  app.set_version_flag("--version", "fullbore " FULLBORE_VERSION);
  app.require_subcommand(0, 1);
  std::vector<std::pair<CLI::App*, Handler>> handlers;
  for (const Subcommand* command : AllSubcommands()) {
    CLI::App* sub = app.add_subcommand(command->name, command->summary);
    sub->formatter(std::make_shared<ExampleFirst>(command->example));
    handlers.emplace_back(sub, command->define(*sub, invocation));
  }
  if (const auto status = HiddenCall(app, words)) return *status;
  if (const auto status = MistypedSubcommand(app, words, invocation.command)) return *status;
  try {
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));  // as CLI11 wants them
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    return Fail({ErrorCode::kInvalidArgument, error.what(), HintFor(app, words, error.what())}, kExitUsage);
  }
  for (const auto& [sub, handler] : handlers) {
    if (sub->parsed()) return handler();
  }
  PrintLaidOut(stdout, app.help());
  return words.empty() && !invocation.has_separator ? 0 : kExitUsage;
}

}  // namespace

}  // namespace fullbore::cli

int main(int argc, char** argv) {
  fullbore::cli::HoldStandardDescriptors();
  try {
    return fullbore::cli::Main(argc, argv);
  } catch (const std::bad_alloc&) {
    return fullbore::cli::Fail(
        {fullbore::ErrorCode::kNoSpace, "there is not enough memory for what was asked for",
         "an input may claim to be larger than it is, or a limit may be set (ulimit -v)"},
        fullbore::cli::kExitFailure);
  } catch (const std::exception& error) {  // a bug: the libraries we use may throw
    return fullbore::cli::Fail({fullbore::ErrorCode::kInternal, error.what(), ""},
                               fullbore::cli::kExitFailure);
  }
}
