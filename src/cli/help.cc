#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "base/nearest.h"
#include "base/print.h"
#include "base/text.h"
#include "cli/finding_pages.h"
#include "cli/output.h"
#include "cli/subcommand.h"

namespace fullbore::cli {

namespace {

// "input-bound" from "# input-bound: training waits for data".
std::string IdOf(std::string_view page) {
  const size_t begin = page.find_first_not_of("# ");
  return std::string(page.substr(begin, page.find(':') - begin));
}

// The number of backquotes or tildes that begin the line, after at most three blanks: three or more open a
// block of code, and as many of the same kind close it.
std::string_view FenceOf(std::string_view line) {
  const size_t begin = line.find_first_not_of(' ');
  if (begin == std::string_view::npos || begin > 3 || (line[begin] != '`' && line[begin] != '~')) return {};
  const size_t end = std::min(line.find_first_not_of(line[begin], begin), line.size());
  return end - begin < 3 ? std::string_view() : line.substr(begin, end - begin);
}

// The pages follow one another. Each begins with a heading "# id: ...", its only first-level one. Inside a
// block of code such a line is a comment.
std::vector<std::string_view> Pages() {
  std::vector<size_t> begins;
  std::string_view open;
  for (size_t at = 0; at < kFindingPages.size();) {
    const size_t end = std::min(kFindingPages.find('\n', at), kFindingPages.size());
    const std::string_view line = kFindingPages.substr(at, end - at);
    const std::string_view fence = FenceOf(line);
    if (open.empty()) {
      open = fence;
      if (line.starts_with("# ")) begins.push_back(at);
    } else if (fence.starts_with(open) && Trim(line) == fence) {
      open = {};
    }
    at = end + 1;
  }
  std::vector<std::string_view> pages;
  for (size_t i = 0; i < begins.size(); ++i) {
    const size_t end = i + 1 < begins.size() ? begins[i + 1] : kFindingPages.size();
    pages.push_back(kFindingPages.substr(begins[i], end - begins[i]));
  }
  return pages;
}

void PrintTopics() {
  Print(stdout, "findings (fullbore help FINDING prints the page):\n\n");
  for (const std::string_view page : Pages()) Print(stdout, "  {}\n", page.substr(2, page.find('\n') - 2));
  Print(stdout, "\ncommands (fullbore COMMAND --help):\n\n");
  for (const Subcommand* command : AllSubcommands())
    Print(stdout, "  {}: {}\n", command->name, command->summary);
}

int Help(const std::string& topic) {
  if (topic.empty()) return PrintTopics(), 0;
  std::vector<std::string> topics;
  for (const std::string_view page : Pages()) {
    topics.push_back(IdOf(page));
    if (topics.back() == topic) return PrintLaidOut(stdout, page), 0;
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
