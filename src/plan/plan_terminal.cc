#include "plan/plan_terminal.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "plan/feed.h"

namespace fullbore::plan {

namespace {

class Text {
 public:
  Text(const Plan& plan, const Request& request, LaidOut out)
      : plan_(plan), request_(request), out_(std::move(out)) {}

  std::string Take() {
    for (const Recorded& one : plan_.recorded) Head(one);
    Speeds();
    Costs();
    for (const std::string& sentence : Sentences(plan_, request_)) {
      out_.Line();
      out_.Paragraph(sentence, 2, 2);
    }
    WhatIsNotTold();
    out_.Line();
    if (AnyFigures() && request_.market.offers.empty())
      out_.Paragraph(
          "Nothing is known of prices and other machines: rows are on the recorded machine's cores. "
          "fullbore plan --prices-example > prices.toml is a file to edit and give with --prices.",
          2, 2);
    if (AnyFigures()) out_.Paragraph("How far to trust it: docs/plan.md", 2, 2);
    return out_.Take();
  }

 private:
  bool AnyFigures() const {
    return std::ranges::any_of(plan_.rows, [](const Row& row) { return row.estimate.why_not.empty(); });
  }

  void Head(const Recorded& one) {
    if (!one.refusal.empty()) return out_.Paragraph(fmt::format("{}: {}", one.id, one.refusal), 2, 4);
    const bool counted = one.batch > 0;
    const double per_s = one.PerStep() * static_cast<double>(one.gpus) / one.step_ns * 1e9;
    std::string text =
        fmt::format("{}: {}{}, {} {}/s", one.id, one.on_cpu ? "" : fmt::format("{}x ", one.gpus),
                    one.on_cpu                ? "no GPU"
                    : one.device != nullptr   ? roofline::ShortName(*one.device)
                    : one.device_name.empty() ? "an unknown device"
                                              : one.device_name,
                    FormatCount(per_s), counted ? "samples" : "steps");
    if (counted) text += fmt::format(", batch {:g}", one.batch);
    if (one.cores.logical > 0) text += fmt::format(", {:g} cores", one.cores.logical);
    if (one.loader) text += fmt::format(", {} loader worker{}", one.loaded_by, one.loaded_by == 1 ? "" : "s");
    if (!one.trains && !one.on_cpu) text += ", forward passes only: devices would exchange nothing";
    out_.Paragraph(text, 2, 4);
    if (one.loader) Loader(one);
  }

  // What the loader delivers at most: known also where the device is not.
  void Loader(const Recorded& one) {
    if (one.cores.logical <= 0) return;
    const auto at_most = [&](const Cores& cores) { return LoaderAlone(one, cores); };
    const Range here = at_most(one.cores);
    const char* unit = one.batch > 0 ? "samples" : "steps";
    std::string text = fmt::format(
        "whatever the device, its loader feeds at most {} {}/s ({}) on {:g} core{}", Count(here.expected),
        unit, Span(here, Count), one.cores.logical, one.cores.logical == 1 ? "" : "s");
    for (const Cores& cores : OtherCores(one))
      text += fmt::format(", {} on {:g}", Count(at_most(cores).expected), cores.logical);
    out_.Paragraph(text, 2, 4);
  }

  // Those of the machines of the file; without one, some that people would ask for.
  std::vector<Cores> OtherCores(const Recorded& one) const {
    constexpr size_t kMost = 6;
    constexpr double kFarthest = 16;  // times the recorded ones: what else binds there, nobody has seen
    std::vector<Cores> others;
    const auto add = [&](const Cores& cores) {
      const bool known = cores.logical == one.cores.logical ||
                         std::ranges::find(others, cores.logical, &Cores::logical) != others.end();
      const bool near = cores.logical <= kFarthest * one.cores.logical;
      if (near && !known && others.size() < kMost) others.push_back(cores);
    };
    for (const Offer& offer : request_.market.offers)
      add({offer.machine.cores, offer.machine.threads_per_core});
    for (const double times : {2.0, 4.0}) {
      if (request_.market.offers.empty()) add({one.cores.logical * times, one.cores.threads_per_core});
    }
    std::ranges::sort(others, {}, &Cores::logical);
    return others;
  }

  static std::string Span(const Range& range, auto&& format) {
    return fmt::format("{} to {}", format(range.low), format(range.high));
  }
  static std::string Count(double count) { return FormatCount(count); }

  std::string Title(const Row& row) const {
    std::string title = NameOf(row.estimate.setup);
    const Recorded& from = plan_.recorded[row.recording];
    if (plan_.recorded.size() > 1 && from.batch > 0) title += fmt::format(" b{:g}", from.batch);
    return Elide(title, 17, out_.unicode());
  }

  static bool IsShown(const Row& row) {
    return row.estimate.why_not.empty() || row.estimate.not_told.empty();
  }

  // At 80 columns. What no row knows has no column.
  void Speeds() {
    if (std::ranges::none_of(plan_.rows, IsShown)) return;
    const auto any = [&](auto&& has) { return std::ranges::any_of(plan_.rows, has); };
    const bool cores = any([](const Row& row) { return row.estimate.cores.logical > 0; });
    const bool counted = plan_.recorded[plan_.rows.front().recording].batch > 0;
    const bool fed = any([](const Row& row) { return row.estimate.cores_needed.has_value(); });
    const bool read = any([](const Row& row) { return row.estimate.read_bytes_per_s.has_value(); });
    const bool held = any([](const Row& row) { return row.estimate.host_bytes_needed.has_value(); });
    out_.Line();
    if (fed || read || held) out_.Line("  {:<60} {}", "", "needs, to be fed");
    out_.Line("  {:<17}{:>5} {:>9} {:>16}  {:<8} {:>5} {:>5} {:>6}", "", cores ? "cores" : "",
              counted ? "samples/s" : "steps/s", "range", "binds", fed ? "cores" : "", read ? "MB/s" : "",
              held ? "RAM" : "");
    for (const Row& row : plan_.rows) {
      if (IsShown(row)) Speed(row);
    }
    if (any([](const Row& row) { return row.measured; })) out_.Line("  * as it was recorded");
  }

  void Speed(const Row& row) {
    const Estimate& estimate = row.estimate;
    const auto if_known = [](const std::optional<double>& value, auto&& format) {
      return value ? format(*value) : std::string();
    };
    const std::string cores =
        estimate.cores.logical > 0 ? fmt::format("{:g}", estimate.cores.logical) : std::string();
    if (!estimate.why_not.empty()) return out_.Line("  {:<17}{:>5} {}", Title(row), cores, estimate.why_not);
    const auto whole = [](double value) { return fmt::format("{:.0f}", std::max(1.0, std::ceil(value))); };
    out_.Line("  {:<17}{:>5} {:>9} {:>16}{} {:<8} {:>5} {:>5} {:>6}", Title(row), cores,
              Count(estimate.per_s.expected), Span(estimate.per_s, Count), row.measured ? "*" : " ",
              Name(estimate.binds), if_known(estimate.cores_needed, whole),
              if_known(estimate.read_bytes_per_s, [&](double bytes) { return whole(bytes / 1e6); }),
              if_known(estimate.host_bytes_needed, FormatBytes));
  }

  void Costs() {
    std::vector<const Row*> priced;
    for (const Row& row : plan_.rows) {
      if (row.per_unit) priced.push_back(&row);
    }
    if (priced.empty()) return;
    std::ranges::stable_sort(priced, {}, [](const Row* row) { return row->per_unit->expected; });
    const Row& first = *priced.front();
    const bool counted = plan_.recorded[first.recording].batch > 0;
    out_.Line();
    out_.Line("  {:<17}{:>7} {:>9} {:>15} {:>8} {:>8} {}", plan_.currency, "an hour",
              counted ? "a million" : "1,000", "range", first.per_epoch ? "an epoch" : "",
              first.per_run ? "the run" : "", "binds");
    for (const Row* row : priced) {
      out_.Line("  {:<17}{:>7} {:>9} {:>15} {:>8} {:>8} {}", Title(*row), MoneyText(*row->per_hour),
                MoneyText(row->per_unit->expected), Span(*row->per_unit, MoneyText),
                row->per_epoch ? MoneyText(row->per_epoch->expected) : "",
                row->per_run ? MoneyText(row->per_run->expected) : "", Name(row->estimate.binds));
    }
  }

  void WhatIsNotTold() {
    for (const NotTold& one : plan_.not_told) {
      out_.Line();
      out_.Paragraph(fmt::format("not told: {}: {}", one.what, one.why), 2, 4);
      if (!one.command.empty()) out_.Paragraph("record: " + one.command, 4, 6);
    }
  }

  const Plan& plan_;
  const Request& request_;
  LaidOut out_;
};

}  // namespace

std::string MoneyText(double money) {
  return money < 0.095   ? fmt::format("{:.2g}", money)
         : money < 999.5 ? fmt::format("{:.2f}", money)
                         : FormatCount(std::round(money));
}

std::string ToText(const Plan& plan, const Request& request, LaidOut out) {
  return Text(plan, request, std::move(out)).Take();
}

}  // namespace fullbore::plan
