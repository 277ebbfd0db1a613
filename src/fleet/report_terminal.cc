#include "fleet/report_terminal.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "base/text.h"
#include "fleet/words.h"

namespace fullbore::fleet {

namespace {

constexpr int kBarCells = 24;

// "12 Nov" would need a locale: the date as everywhere else.
std::string Day(int64_t unix_ns) { return FormatUtc(unix_ns).substr(0, 10); }

class Text {
 public:
  Text(const Report& report, const ReportFor& whom, const std::string& since, LaidOut out)
      : report_(report), for_(whom), since_(since), out_(std::move(out)) {}

  std::string Take() {
    Head();
    Parts();
    Trends();
    if (for_.user.empty()) Groups();
    Fixes();
    Asked();
    return out_.Take();
  }

 private:
  std::string Share(WideNs ns) const { return ShareText(ns, report_.given_ns); }
  std::string Money(double money) const { return MoneyText(money, report_.currency); }
  std::string Bar(WideNs ns) const {
    if (report_.given_ns <= 0) return "";
    const double share =
        std::clamp(static_cast<double>(ns) / static_cast<double>(report_.given_ns), 0.0, 1.0);
    const auto cells = static_cast<size_t>(std::lround(kBarCells * share));
    std::string bar;
    for (size_t i = 0; i < cells; ++i) bar += out_.unicode() ? "█" : "#";
    return bar;
  }

  void Head() {
    const std::string whose =
        for_.user.empty()
            ? fmt::format("{} of {}", Plural(report_.runs, "run"), Plural(report_.users.size(), "user"))
            : fmt::format("{} of {}", Plural(report_.runs, "run"), for_.user);
    out_.Line("  {}, {} to {}: {} device hours{}", whose, Day(report_.begin_unix_ns),
              Day(report_.end_unix_ns), HoursText(report_.given_ns),
              report_.has_prices ? ", " + Money(report_.cost) : "");
    if (report_.unpriced.empty()) return;
    std::string devices;
    for (const std::string& device : report_.unpriced)
      devices += (devices.empty() ? "" : ", ") + (device.empty() ? std::string("unknown") : device);
    out_.Paragraph("no price is known of " + devices + ": these are in no cost", 2, 2);
  }

  void Row(const std::string& name, const PartTotal& part, bool bar) {
    out_.Line("  {:<24}{:>9}{:>8}{}  {}", name, HoursText(part.device_ns), Share(part.device_ns),
              report_.has_prices ? fmt::format("{:>10}", MoneyText(part.cost, "")) : "",
              bar ? Bar(part.device_ns) : "");
  }

  void Parts() {
    out_.Line();
    out_.Line("  {:<24}{:>9}{:>8}{}", "where they went", "hours", "share",
              report_.has_prices ? fmt::format("{:>10}", "cost") : "");
    for (const Kind kind : AllKinds()) {
      std::vector<PartTotal> whole;
      for (const PartTotal& part : report_.parts) {
        if (part.kind == kind) AddUp(whole, {kind, "", part.device_ns, part.cost});
      }
      if (whole.empty() || whole[0].device_ns == 0) continue;
      Row(NameForPeople(kind), whole[0], true);
      for (const PartTotal& part : report_.parts) {
        if (part.kind == kind && !part.cause.empty()) Row("  " + part.cause, part, false);
      }
    }
  }

  // What is worth a line: a tenth of all waste, this time or the last.
  void Trends() {
    if (!report_.before) return;
    const Before& before = *report_.before;
    WideNs waste_ns = 0;
    for (const Trend& trend : before.trends) waste_ns += trend.now_ns;
    out_.Line();
    out_.Line("  runs that began in the {} before: {} device hours of {}, {} of them wasted; now {}", since_,
              HoursText(before.given_ns), Plural(before.runs, "run"), HoursText(before.waste_ns),
              HoursText(waste_ns));
    const WideNs least_ns = std::max(waste_ns, before.waste_ns) / 10;
    for (const Trend& trend : before.trends) {
      if (trend.change_ns() <= least_ns) continue;
      const std::string where =
          for_.user.empty() ? fmt::format("; most by {}: {}, was {}", trend.group,
                                          HoursText(trend.group_now_ns), HoursText(trend.group_before_ns))
                            : "";
      out_.Paragraph(fmt::format("{} {}, was {}{}", trend.cause, HoursText(trend.now_ns),
                                 HoursText(trend.before_ns), where),
                     4, 6);
    }
  }

  void Groups() {
    out_.Line();
    out_.Line("  {:<24}{:>9}{:>8}{:>9}{:>12}", fmt::format("by {}", Name(report_.by)), "hours", "runs",
              "wasted", "not judged");
    for (size_t i = 0; i < std::min(kMostGroups, report_.groups.size()); ++i) {
      const Group& group = report_.groups[i];
      out_.Line("  {:<24}{:>9}{:>8}{:>9}{:>12}", Elide(group.name, 23, out_.unicode()),
                HoursText(group.given_ns), group.runs, ShareText(group.waste_ns, group.given_ns),
                ShareText(group.not_judged_ns, group.given_ns));
    }
    if (report_.groups.size() > kMostGroups)
      out_.Line("  and {} more (--json, --csv)", report_.groups.size() - kMostGroups);
  }

  void Fixes() {
    if (report_.fixes.empty()) return;
    out_.Line();
    out_.Line("  what brings most back, in device hours");
    const size_t most = for_.user.empty() ? kMostFixes : kMostFixesOfALetter;
    for (size_t i = 0; i < std::min(most, report_.fixes.size()); ++i) {
      const Fix& fix = report_.fixes[i];
      out_.Line("  {:>2}  {} ({} to {})  {}", i + 1, HoursText(fix.expected_ns), HoursText(fix.low_ns),
                HoursText(fix.high_ns), fix.change.empty() ? fix.finding : fix.change);
      const std::string worth = report_.has_prices ? ", worth " + Money(fix.expected_cost) : "";
      out_.Paragraph(fmt::format("{}{}{}; for instance {}: {}", Plural(fix.runs, "run"), Whose(fix.users),
                                 worth, fix.run, fix.title),
                     6, 6);
    }
  }

  void Asked() {
    if (report_.asked.empty()) return;
    out_.Line();
    out_.Line("  asked for and hardly used, on average");
    for (const OverAskedJobs& each : report_.asked) {
      const std::string whose = Plural(each.jobs, "job") + Whose(each.users);
      const std::string given = AmountText(each.what, each.given);
      if (each.what == "GPUs")
        out_.Line("      {:<8}{}, on which nothing ran: {}", each.what, given, whose);
      else
        out_.Line("      {:<8}{}, used {}: {}", each.what, given, AmountText(each.what, each.used), whose);
    }
  }

  // " of anna, ben and 3 more"; of a letter nothing.
  std::string Whose(const std::set<std::string>& users) const {
    constexpr size_t kNamed = 3;
    if (!for_.user.empty()) return "";
    std::string text;
    size_t named = 0;
    for (const std::string& user : users) {
      if (named++ < kNamed)
        text += (text.empty() ? " of " : ", ") + (user.empty() ? std::string("unknown") : user);
    }
    return users.size() > kNamed ? text + fmt::format(" and {} more", users.size() - kNamed) : text;
  }

  const Report& report_;
  const ReportFor& for_;
  const std::string& since_;
  LaidOut out_;
};

}  // namespace

std::string ToText(const Report& report, const ReportFor& whom, const std::string& since, LaidOut out) {
  return Text(report, whom, since, std::move(out)).Take();
}

}  // namespace fullbore::fleet
