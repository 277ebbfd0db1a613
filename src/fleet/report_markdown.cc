#include "fleet/report_markdown.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/markup.h"
#include "base/text.h"
#include "fleet/words.h"

namespace fullbore::fleet {

namespace {

class Markdown {
 public:
  Markdown(const Report& report, const ReportFor& whom) : report_(report), for_(whom) {}

  std::string Head() const {
    return fmt::format("{}\n\n{} of {}: {} device hours{}.\n", kMarkdownTitle, Plural(report_.runs, "run"),
                       for_.user.empty() ? Plural(report_.users.size(), "user") : InMarkdown(for_.user),
                       HoursText(report_.given_ns), Cost());
  }

  std::string Parts() const {
    std::string text = "\n| where they went | hours | share |\n|---|--:|--:|\n";
    for (const PartTotal& part : report_.parts) {
      const std::string cause = part.cause.empty() ? "" : ": " + InMarkdown(part.cause);
      text += fmt::format("| {}{} | {} | {} |\n", NameForPeople(part.kind), cause, HoursText(part.device_ns),
                          ShareText(part.device_ns, report_.given_ns));
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
                          group.runs, ShareText(group.waste_ns, group.given_ns),
                          ShareText(group.not_judged_ns, group.given_ns));
    }
    if (report_.groups.size() > kMostGroups)
      text += fmt::format("\nand {} more\n", report_.groups.size() - kMostGroups);
    return text;
  }

 private:
  std::string Cost() const {
    if (!report_.has_prices) return "";
    const std::string without = fmt::format("{}", fmt::join(report_.unpriced, ", "));
    return ", " + MoneyText(report_.cost, report_.currency) +
           (without.empty() ? "" : " without " + InMarkdown(without));
  }

  const Report& report_;
  const ReportFor& for_;
};

}  // namespace

std::string ToMarkdown(const Report& report, const ReportFor& whom) {
  const Markdown markdown(report, whom);
  const bool letter = !whom.user.empty();
  return markdown.Head() + markdown.Parts() + markdown.Fixes(letter ? kMostFixesOfALetter : kMostFixes) +
         (letter ? "" : markdown.Groups());
}

}  // namespace fullbore::fleet
