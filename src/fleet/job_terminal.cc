#include "fleet/job_terminal.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/laid_out.h"
#include "base/printable.h"
#include "base/text.h"
#include "fleet/words.h"

namespace fullbore::fleet {

namespace {

constexpr int kBarCells = 32;

class Text {
 public:
  Text(const Job& job, bool unicode) : job_(job), unicode_(unicode), out_(unicode) {}

  std::string Take() {
    Head();
    Bars();
    Runs();
    Uses();
    for (const std::string& note : NotesOn(job_)) {
      out_.Line();
      out_.Paragraph(note, 2, 2);
    }
    return out_.Take();
  }

 private:
  std::string Elided(const std::string& text, int columns) const {
    return Pad(Elide(Printable(text, unicode_), columns, unicode_), columns);
  }

  double Part(int64_t ns) const {
    return job_.paid_ns > 0 ? static_cast<double>(ns) / static_cast<double>(job_.paid_ns) : 0;
  }

  std::string Time(int64_t ns) const { return TimeText(ns, job_.paid_ns); }
  bool IsShort() const { return Time(job_.paid_ns) != HoursText(job_.paid_ns); }

  std::string Whose() const {
    std::string text = job_.id.empty() ? "run " + job_.runs.back().id : "job " + job_.id;
    if (!job_.name.empty()) text += fmt::format(" ({})", job_.name);
    if (!job_.user.empty()) text += " of " + job_.user;
    if (!job_.account.empty()) text += ", " + job_.account;
    if (!job_.partition.empty()) text += ", " + job_.partition;
    return text;
  }

  std::string NotJudged() const {
    const auto bar = std::ranges::find(job_.bars, Kind::kNotJudged, &Bar::kind);
    return bar == job_.bars.end() ? "" : fmt::format(", {} not judged", Time(bar->device_ns));
  }

  void Head() {
    const size_t restarts = static_cast<size_t>(job_.restarts);
    out_.Line("  {}: {}{}", Whose(), Plural(job_.runs.size(), "run"),
              restarts > 0 ? ", " + Plural(restarts, "restart") : "");
    const std::string unit = IsShort() ? "of device time" : "device hours";
    out_.Line("  {} to {}, {}: {} {} paid, {} of it useful work ({}){}", FormatUtc(job_.begin_unix_ns),
              FormatUtc(job_.end_unix_ns), job_.device, Time(job_.paid_ns), unit, Time(job_.useful_ns),
              FormatPercent(Part(job_.useful_ns)), NotJudged());
  }

  // What lies between two heights of the waterfall, as parts of what was paid.
  std::string Cells(double from, double to) const {
    const auto first = static_cast<size_t>(std::lround(kBarCells * std::clamp(from, 0.0, 1.0)));
    const auto last = static_cast<size_t>(std::lround(kBarCells * std::clamp(to, 0.0, 1.0)));
    std::string cells(first, ' ');
    for (size_t i = first; i < last; ++i) cells += unicode_ ? "█" : "#";
    return last > first ? cells : cells + (unicode_ ? "▏" : "|");
  }

  void Row(const std::string& name, int64_t ns, const std::string& runs, const std::string& cells) {
    out_.Line("  {}{:>12}{:>8}  {}  {}", Elided(name, 24), Time(ns), FormatPercent(Part(ns)), Elided(runs, 8),
              cells);
  }

  void Bars() {
    out_.Line();
    out_.Line("  {}{:>12}{:>8}  {}", Elided("from paid to useful", 24), IsShort() ? "time" : "hours", "share",
              "of runs");
    Row("paid", job_.paid_ns, "", Cells(0, 1));
    double height = 1;
    for (const Bar& bar : job_.bars) {
      std::vector<size_t> numbers;
      for (const Bar::Of& of : bar.of) numbers.push_back(of.run + 1);
      const double below = height - Part(bar.device_ns);
      Row(NameForPeople(bar), bar.device_ns, Ranges(numbers), Cells(below, height));
      height = below;
    }
  }

  void Runs() {
    out_.Line();
    out_.Line("      {}{}{:>14}{:>9}  {}", Elided("run", 34), Elided("began", 21), "lasted", "devices",
              "how it ended");
    for (size_t i = 0; i < job_.runs.size(); ++i) {
      const RunAccount& run = job_.runs[i];
      out_.Line("  {:>2}  {}{}{:>14}{:>9}  {}", i + 1, Elided(run.id, 33) + " ",
                Elided(FormatUtc(run.begin_unix_ns), 21), FormatDuration(run.end_unix_ns - run.begin_unix_ns),
                run.devices, HowItEnded(run));
    }
  }

  void Uses() {
    const std::vector<Asked> rows = AskedAndUsed(job_.use);
    if (rows.empty()) return;
    out_.Line();
    out_.Line("  {}{}{}", Elided("asked for", 14), Elided("given", 14), "used");
    for (const Asked& row : rows)
      out_.Line("  {}{}{}", Elided(row.what, 14), Elided(row.given, 14), row.used);
  }

  const Job& job_;
  bool unicode_;
  LaidOut out_;
};

}  // namespace

std::string ToText(const Job& job, bool unicode) { return Text(job, unicode).Take(); }

}  // namespace fullbore::fleet
