#include "fleet/report_markdown.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/markup.h"
#include "base/text.h"
#include "fleet/words.h"

namespace fullbore::fleet {

namespace {

std::string Share(int64_t ns, int64_t of_ns) {
  return of_ns > 0 ? FormatPercent(static_cast<double>(ns) / static_cast<double>(of_ns)) : "";
}

class Markdown {
 public:
  Markdown(const Report& report, double price) : report_(report), price_(price) {}

  std::string Head(const std::string& user) const {
    return fmt::format("{}\n\n{} of {}: {} device hours{}.\n", kMarkdownTitle, Plural(report_.runs, "run"),
                       user.empty() ? Plural(report_.users.size(), "user") : InMarkdown(user),
                       HoursText(report_.given_ns), price_ > 0 ? ", " + Money(report_.given_ns) : "");
  }

  std::string Parts() const {
    std::string text = "\n| where they went | hours | share |\n|---|--:|--:|\n";
    for (const Part& part : report_.parts) {
      const std::string cause = part.cause.empty() ? "" : ": " + InMarkdown(part.cause);
      text += fmt::format("| {}{} | {} | {} |\n", NameForPeople(part.kind), cause, HoursText(part.device_ns),
                          Share(part.device_ns, report_.given_ns));
    }
    return text;
  }

  std::string Fixes(size_t most) const {
    if (report_.fixes.empty()) return "";
    std::string text = "\n| what brings most back | hours | from, to | runs |\n|---|--:|--:|--:|\n";
    for (size_t i = 0; i < std::min(most, report_.fixes.size()); ++i) {
      const Fix& fix = report_.fixes[i];
      text +=
          fmt::format("| {}: {} | {} | {}, {} | {} |\n",
                      InMarkdown(fix.change.empty() ? fix.finding : fix.change), InMarkdown(fix.title),
                      HoursText(fix.expected_ns), HoursText(fix.low_ns), HoursText(fix.high_ns), fix.runs);
    }
    return text;
  }

  std::string Groups() const {
    std::string text = fmt::format("\n| {} | hours | runs | wasted | not judged |\n|---|--:|--:|--:|--:|\n",
                                   Name(report_.by));
    for (size_t i = 0; i < std::min(kMostGroups, report_.groups.size()); ++i) {
      const Group& group = report_.groups[i];
      text += fmt::format("| {} | {} | {} | {} | {} |\n", InMarkdown(group.name), HoursText(group.given_ns),
                          group.runs, Share(group.waste_ns, group.given_ns),
                          Share(group.not_judged_ns, group.given_ns));
    }
    if (report_.groups.size() > kMostGroups)
      text += fmt::format("\nand {} more\n", report_.groups.size() - kMostGroups);
    return text;
  }

 private:
  std::string Money(int64_t ns) const {
    return fmt::format("{:.2f}", static_cast<double>(ns) / 3.6e12 * price_);
  }

  const Report& report_;
  double price_;
};

}  // namespace

std::string ToMarkdown(const Report& report, const std::string& user, double price) {
  const Markdown markdown(report, price);
  return markdown.Head(user) + markdown.Parts() +
         markdown.Fixes(user.empty() ? kMostFixes : kMostFixesOfALetter) +
         (user.empty() ? markdown.Groups() : "");
}

}  // namespace fullbore::fleet
