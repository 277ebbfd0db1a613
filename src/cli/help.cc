#include <fmt/format.h>

#include <memory>

#include "cli/finding_pages.h"
#include "cli/output.h"
#include "cli/subcommand.h"

namespace fullbore::cli {

namespace {

// "input-bound" from "# input-bound: training waits for data".
std::string_view IdOf(std::string_view page) {
  const size_t begin = page.find_first_not_of("# ");
  return page.substr(begin, page.find(':') - begin);
}

// The pages follow one another; each begins with a line "# id: ...".
std::vector<std::string_view> Pages() {
  std::vector<std::string_view> pages;
  size_t begin = 0;
  while (begin < kFindingPages.size()) {
    size_t end = kFindingPages.find("\n# ", begin);
    end = end == std::string_view::npos ? kFindingPages.size() : end + 1;
    pages.push_back(kFindingPages.substr(begin, end - begin));
    begin = end;
  }
  return pages;
}

int Help(const std::string& topic) {
  if (topic.empty()) {
    fmt::print("findings (fullbore help FINDING prints the page):\n\n");
    for (const std::string_view page : Pages()) fmt::print("  {}\n", page.substr(2, page.find('\n') - 2));
    fmt::print("\ncommands (fullbore COMMAND --help):\n\n");
    for (const Subcommand* command : AllSubcommands())
      fmt::print("  {}: {}\n", command->name, command->summary);
    return 0;
  }
  for (const std::string_view page : Pages()) {
    if (IdOf(page) != topic) continue;
    fmt::print("{}", page);
    return 0;
  }
  for (const Subcommand* command : AllSubcommands()) {
    if (topic == command->name) return fmt::print("fullbore {} --help says all about it\n", topic), 0;
  }
  return Fail(
      {ErrorCode::kNotFound, fmt::format("no finding is called '{}'", topic), "fullbore help lists them"},
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
