#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "base/nearest.h"
#include "base/print.h"
#include "base/text.h"
#include "cli/output.h"
#include "cli/subcommand.h"
#include "report/finding_pages.h"

namespace fullbore::cli {

namespace {

void PrintTopics() {
  Print(stdout, "findings (fullbore help FINDING prints the page):\n\n");
  for (const std::string_view page : report::FindingPages())
    Print(stdout, "  {}\n", page.substr(2, page.find('\n') - 2));
  Print(stdout, "\ncommands (fullbore COMMAND --help):\n\n");
  for (const Subcommand* command : AllSubcommands())
    Print(stdout, "  {}: {}\n", command->name, command->summary);
}

// Without the notes behind the language of a block of code, which are for the tests of the pages.
std::string ForReaders(std::string_view page) {
  std::string text;
  for (std::string_view line : Split(page, '\n')) {
    if (line.starts_with("```")) line = line.substr(0, line.find(' '));
    text.append(line).append("\n");
  }
  text.pop_back();  // Split gives what follows the last end of line, too
  return text;
}

int Help(const std::string& topic) {
  if (topic.empty()) return PrintTopics(), 0;
  std::vector<std::string> topics;
  for (const std::string_view page : report::FindingPages()) {
    topics.push_back(report::IdOfFindingPage(page));
    if (topics.back() == topic) return PrintLaidOut(stdout, ForReaders(page)), 0;
  }
  for (const Subcommand* command : AllSubcommands()) {
    topics.emplace_back(command->name);
    if (topic == command->name) return Print(stdout, "fullbore {} --help describes it\n", topic), 0;
  }
  const auto meant = Nearest(topic, topics);
  return Fail({ErrorCode::kNotFound, fmt::format("no finding is called '{}'", topic),
               meant ? fmt::format("did you mean `fullbore help {}`?", *meant) : "fullbore help lists them"},
              kExitUsage);
}

Handler Define(CLI::App& app, const Invocation&) {
  auto topic = std::make_shared<std::string>();
  app.add_option("FINDING", *topic, "The id of a finding, as the report names it");
  return [topic] { return Help(*topic); };
}

}  // namespace

const Subcommand kHelp = {"help", "Explain a finding: what it is, how to confirm it, how to fix it",
                          "fullbore help input-bound", Define};

}  // namespace fullbore::cli
