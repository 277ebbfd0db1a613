#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>

#include "base/clock.h"
#include "base/csv.h"
#include "base/print.h"
#include "base/secrets.h"
#include "base/text.h"
#include "cli/fleet_store.h"
#include "cli/output.h"
#include "cli/results.h"
#include "cli/subcommand.h"
#include "fleet/exemptions.h"
#include "fleet/page/report_page.h"
#include "fleet/report.h"
#include "fleet/report_json.h"
#include "fleet/report_markdown.h"
#include "fleet/words.h"

namespace fullbore::cli {

namespace {

using fleet::HoursText;
using fleet::Plural;

constexpr int kBarCells = 24;
constexpr const char* kCsvHeader = "group,runs,given_h,work_h,waste_h,not_judged_h";
const ResultFormat kFleetCsv = {"a table", [](std::string_view head) { return head.starts_with(kCsvHeader); },
                                false};

const ResultFormat kFleetMarkdown = {
    "Markdown", [](std::string_view head) { return head.starts_with(fleet::kMarkdownTitle); }, false};

struct Flags {
  StoreFlags store;
  std::string by = "user", user, exempt;
  double price = 0;
  ResultFile json{"--json", kJsonResult}, csv{"--csv", kFleetCsv}, html{"--html", kHtmlResult},
      markdown{"--markdown", kFleetMarkdown};
  bool force = false;
};

double Hours(int64_t ns) { return static_cast<double>(ns) / 3.6e12; }

// "12 Nov" would need a locale: the date as everywhere else.
std::string Day(int64_t unix_ns) { return FormatUtc(unix_ns).substr(0, 10); }

class Text {
 public:
  Text(const fleet::Report& report, const Flags& flags) : report_(report), flags_(flags) {}

  void Print() const {
    Head();
    Parts();
    Trends();
    if (flags_.user.empty()) Groups();
    Fixes();
    Asked();
  }

 private:
  template <typename... Arguments>
  static void Line(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    const std::string line = fmt::format(format, std::forward<Arguments>(arguments)...);
    fullbore::Print(stdout, "{}\n",
                    Printable(line.substr(0, line.find_last_not_of(' ') + 1), LocaleIsUtf8()));
  }

  std::string Share(int64_t ns) const {
    return report_.given_ns > 0
               ? FormatPercent(static_cast<double>(ns) / static_cast<double>(report_.given_ns))
               : "";
  }
  std::string Money(int64_t ns) const {
    return flags_.price > 0 ? fmt::format("{:.2f}", Hours(ns) * flags_.price) : "";
  }
  std::string Bar(int64_t ns) const {
    if (report_.given_ns <= 0) return "";
    const double share =
        std::clamp(static_cast<double>(ns) / static_cast<double>(report_.given_ns), 0.0, 1.0);
    const auto cells = static_cast<size_t>(std::lround(kBarCells * share));
    std::string bar;
    for (size_t i = 0; i < cells; ++i) bar += LocaleIsUtf8() ? "█" : "#";
    return bar;
  }

  void Head() const {
    const std::string whose =
        flags_.user.empty()
            ? fmt::format("{} of {}", Plural(report_.runs, "run"), Plural(report_.users.size(), "user"))
            : fmt::format("{} of {}", Plural(report_.runs, "run"), flags_.user);
    Line("  {}, {} to {}: {} device hours{}", whose, Day(report_.begin_unix_ns), Day(report_.end_unix_ns),
         HoursText(report_.given_ns), flags_.price > 0 ? ", " + Money(report_.given_ns) : "");
  }

  void Row(const std::string& name, int64_t ns, bool bar) const {
    Line("  {:<24}{:>9}{:>8}{}  {}", name, HoursText(ns), Share(ns),
         flags_.price > 0 ? fmt::format("{:>10}", Money(ns)) : "", bar ? Bar(ns) : "");
  }

  void Parts() const {
    Line("");
    Line("  {:<24}{:>9}{:>8}{}", "where they went", "hours", "share",
         flags_.price > 0 ? fmt::format("{:>10}", "cost") : "");
    for (const fleet::Kind kind : fleet::AllKinds()) {
      int64_t ns = 0;
      for (const fleet::Part& part : report_.parts) ns += part.kind == kind ? part.device_ns : 0;
      if (ns == 0) continue;
      Row(fleet::NameForPeople(kind), ns, true);
      for (const fleet::Part& part : report_.parts) {
        if (part.kind == kind && !part.cause.empty()) Row("  " + part.cause, part.device_ns, false);
      }
    }
  }

  // What is worth a line: a tenth of all waste, this time or the last.
  void Trends() const {
    if (!report_.before) return;
    const fleet::Before& before = *report_.before;
    int64_t waste_ns = 0;
    for (const fleet::Trend& trend : before.trends) waste_ns += trend.now_ns;
    Line("");
    Line("  runs that began in the {} before: {} device hours of {}, {} of them wasted; now {}",
         flags_.store.since, HoursText(before.given_ns), Plural(before.runs, "run"),
         HoursText(before.waste_ns), HoursText(waste_ns));
    const int64_t least_ns = std::max(waste_ns, before.waste_ns) / 10;
    for (const fleet::Trend& trend : before.trends) {
      if (std::abs(trend.now_ns - trend.before_ns) <= least_ns) continue;
      const std::string where =
          flags_.user.empty() ? fmt::format("; most by {}: {}, was {}", trend.group,
                                            HoursText(trend.group_now_ns), HoursText(trend.group_before_ns))
                              : "";
      PrintWrapped(fmt::format("{} {}, was {}{}", trend.cause, HoursText(trend.now_ns),
                               HoursText(trend.before_ns), where),
                   4, 6);
    }
  }

  void Groups() const {
    Line("");
    Line("  {:<24}{:>9}{:>8}{:>9}{:>12}", fmt::format("by {}", fleet::Name(report_.by)), "hours", "runs",
         "wasted", "not judged");
    const auto of = [](int64_t part_ns, int64_t whole_ns) {
      return whole_ns > 0 ? FormatPercent(static_cast<double>(part_ns) / static_cast<double>(whole_ns)) : "";
    };
    for (size_t i = 0; i < std::min(fleet::kMostGroups, report_.groups.size()); ++i) {
      const fleet::Group& group = report_.groups[i];
      Line("  {:<24}{:>9}{:>8}{:>9}{:>12}", Elide(group.name, 23, LocaleIsUtf8()), HoursText(group.given_ns),
           group.runs, of(group.waste_ns, group.given_ns), of(group.not_judged_ns, group.given_ns));
    }
    if (report_.groups.size() > fleet::kMostGroups)
      Line("  and {} more (--json, --csv)", report_.groups.size() - fleet::kMostGroups);
  }

  void Fixes() const {
    if (report_.fixes.empty()) return;
    Line("");
    Line("  what brings most back, in device hours");
    const size_t most = flags_.user.empty() ? fleet::kMostFixes : fleet::kMostFixesOfALetter;
    for (size_t i = 0; i < std::min(most, report_.fixes.size()); ++i) {
      const fleet::Fix& fix = report_.fixes[i];
      Line("  {:>2}  {} ({} to {})  {}", i + 1, HoursText(fix.expected_ns), HoursText(fix.low_ns),
           HoursText(fix.high_ns), fix.change.empty() ? fix.finding : fix.change);
      PrintWrapped(fmt::format("{}{}; for instance {}: {}", Plural(fix.runs, "run"), Whose(fix.users),
                               fix.run, fix.title),
                   6, 6);
    }
  }

  void Asked() const {
    if (report_.asked.empty()) return;
    Line("");
    Line("  asked for and hardly used, on average");
    for (const fleet::OverAskedRuns& each : report_.asked) {
      const std::string whose = Plural(each.runs, "run") + Whose(each.users);
      const std::string given = fleet::AmountText(each.what, each.given);
      if (each.what == "GPUs")
        Line("      {:<8}{}, on which nothing ran: {}", each.what, given, whose);
      else
        Line("      {:<8}{}, used {}: {}", each.what, given, fleet::AmountText(each.what, each.used), whose);
    }
  }

  // " of anna, ben and 3 more"; of a letter nothing.
  std::string Whose(const std::set<std::string>& users) const {
    constexpr size_t kNamed = 3;
    if (!flags_.user.empty()) return "";
    std::string text;
    size_t named = 0;
    for (const std::string& user : users) {
      if (named++ < kNamed)
        text += (text.empty() ? " of " : ", ") + (user.empty() ? std::string("unknown") : user);
    }
    return users.size() > kNamed ? text + fmt::format(" and {} more", users.size() - kNamed) : text;
  }

  const fleet::Report& report_;
  const Flags& flags_;
};

std::string CsvOf(const fleet::Report& report) {
  std::string csv = std::string(kCsvHeader) + "\n";
  for (const fleet::Group& group : report.groups) {
    csv += fmt::format("{},{},{:.6f},{:.6f},{:.6f},{:.6f}\n", CsvCell(group.name), group.runs,
                       Hours(group.given_ns), Hours(group.work_ns), Hours(group.waste_ns),
                       Hours(group.not_judged_ns));
  }
  return csv;
}

// With the time before, as long, where --since says how long that is.
Result<fleet::Report> Read(const Flags& flags, fleet::By by) {
  auto range = RangeOf(flags.store);
  if (!range) return range.error();
  range->user = flags.user;
  const auto exemptions =
      flags.exempt.empty() ? Result(std::vector<fleet::Exemption>()) : fleet::ReadExemptions(flags.exempt);
  if (!exemptions) return exemptions.error();
  auto store = OpenStore(flags.store);
  if (!store) return store.error();
  const auto sums = store->SumsOf(*range, *exemptions);
  if (!sums) return sums.error();
  fleet::Report report = fleet::ReportOn(*sums, by, *exemptions);
  if (flags.store.since.empty()) return report;
  const fleet::Range earlier{2 * range->since_unix_ns - WallNs(), range->since_unix_ns, flags.user};
  const auto before = store->SumsOf(earlier, *exemptions);
  if (!before) return before.error();
  if (!before->runs.empty()) report.before = fleet::TrendsOf(*before, *sums, by);
  return report;
}

int Run(Flags& flags) {
  InputFiles inputs;
  inputs.Add(flags.store.target);
  inputs.Add(flags.exempt);
  if (auto judged =
          JudgeResults({&flags.json, &flags.csv, &flags.html, &flags.markdown}, inputs, flags.force);
      !judged)
    return Fail(judged.error(), kExitUsage);
  const auto by = fleet::ByNamed(flags.by);
  if (!by) return Fail(by.error(), kExitUsage);
  const auto read = Read(flags, *by);
  if (!read) return Fail(read.error(), StatusOf(read.error()));
  const fleet::Report& report = *read;
  if (flags.json.wanted()) {
    if (auto written = WriteJson(flags.json, ToJson(report)); !written)
      return Fail(written.error(), kExitFailure);
  }
  if (flags.csv.wanted()) {
    if (auto written = flags.csv.Write(CsvOf(report)); !written) return Fail(written.error(), kExitFailure);
  }
  if (flags.markdown.wanted()) {
    const auto written = flags.markdown.Write(ToMarkdown(report, flags.user, flags.price));
    if (!written) return Fail(written.error(), kExitFailure);
  }
  if (flags.html.wanted()) {
    const std::string page = ToHtml(report, {flags.user, flags.price});
    if (auto written = flags.html.Write(page); !written) return Fail(written.error(), kExitFailure);
  }
  if (AnyToStandardOutput({&flags.json, &flags.csv, &flags.html, &flags.markdown})) return 0;
  if (report.runs == 0) {
    Print(stdout, "no runs{} in '{}'{}\n", flags.user.empty() ? "" : " of " + flags.user,
          MaskUrl(flags.store.target), flags.store.since.empty() ? "" : " since then");
    return 0;
  }
  Text(report, flags).Print();
  return 0;
}

Handler Define(CLI::App& app, const Invocation&) {
  auto flags = std::make_shared<Flags>();
  AddStore(app, flags->store);
  app.add_option("--by", flags->by, "Grouped by user, account, partition or device")
      ->type_name("GROUPING")
      ->default_str("user");
  app.add_option("--for", flags->user,
                 "Only this user's runs, with the three best edits and nothing about others")
      ->type_name("USER")
      ->check([](const std::string& name) { return std::string(name.empty() ? "no name of a user" : ""); });
  app.add_option("--exempt", flags->exempt,
                 "Rules of what is never called wasted: docs/fleet.md describes the file")
      ->type_name("FILE");
  app.add_option("--price", flags->price, "Of a device hour, in any currency: what it costs is shown as well")
      ->check(CLI::NonNegativeNumber);
  AddResult(app, flags->json, "Write the report object to this file");
  AddResult(app, flags->csv, "Write the groups to this file");
  AddResult(app, flags->markdown, "Write the report as Markdown to this file");
  AddResult(app, flags->html, "Write a page with the report, or with the letter, to this file");
  AddForce(app, flags->force);
  return [flags] { return Run(*flags); };
}

}  // namespace

const Subcommand kFleetReport = {"report",
                                 "Where the device hours of many runs went, and which edits bring most back",
                                 "fullbore fleet report --by user", Define};

}  // namespace fullbore::cli
