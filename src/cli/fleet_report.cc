#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "base/clock.h"
#include "base/csv.h"
#include "base/laid_out.h"
#include "base/print.h"
#include "base/secrets.h"
#include "cli/fleet_store.h"
#include "cli/output.h"
#include "cli/results.h"
#include "cli/subcommand.h"
#include "fleet/exemptions.h"
#include "fleet/page/report_page.h"
#include "fleet/report.h"
#include "fleet/report_json.h"
#include "fleet/report_markdown.h"
#include "fleet/report_terminal.h"
#include "fleet/words.h"
#include "plan/market_file.h"

namespace fullbore::cli {

namespace {

constexpr const char* kCsvHeader = "group,runs,given_h,work_h,waste_h,not_judged_h";
const ResultFormat kFleetCsv = {"a table", [](std::string_view head) { return head.starts_with(kCsvHeader); },
                                false};

const ResultFormat kFleetMarkdown = {
    "Markdown", [](std::string_view head) { return head.starts_with(fleet::kMarkdownTitle); }, false};

struct Flags {
  StoreFlags store;
  std::string by = "user", user, exempt, prices;
  double price = 0;
  ResultFile json{"--json", kJsonResult}, csv{"--csv", kFleetCsv}, html{"--html", kHtmlResult},
      markdown{"--markdown", kFleetMarkdown};
  bool force = false;
};

std::string CsvOf(const fleet::Report& report) {
  std::string csv = std::string(kCsvHeader) + "\n";
  for (const fleet::Group& group : report.groups) {
    csv += fmt::format("{},{},{:.6f},{:.6f},{:.6f},{:.6f}\n", CsvCell(group.name), group.runs,
                       fleet::Hours(group.given_ns), fleet::Hours(group.work_ns),
                       fleet::Hours(group.waste_ns), fleet::Hours(group.not_judged_ns));
  }
  return csv;
}

// Of the file's machines with that device, what an hour of one costs on the cheapest.
std::optional<double> PriceIn(const plan::Market& market, const std::string& name) {
  const roofline::Device* device = roofline::DeviceMeant(name);
  std::optional<double> least;
  for (const plan::Offer& offer : market.offers) {
    const plan::Machine& machine = offer.machine;
    if (device == nullptr || machine.device != device || !machine.per_hour) continue;
    const double price = *machine.per_hour / static_cast<double>(machine.gpus);
    least = std::min(least.value_or(price), price);
  }
  return least;
}

Result<fleet::Prices> PricesOf(const Flags& flags) {
  if (flags.price > 0) return fleet::Prices{[price = flags.price](const auto&) { return price; }, ""};
  if (flags.prices.empty()) return fleet::Prices();
  const auto market = plan::ReadMarket(flags.prices);
  if (!market) return market.error();
  const auto of_hour = [market = *market](const std::string& device) { return PriceIn(market, device); };
  return fleet::Prices{of_hour, market->currency};
}

// With the time before, as long, where --since says how long that is.
Result<fleet::Report> Read(const Flags& flags, fleet::By by) {
  auto range = RangeOf(flags.store);
  if (!range) return range.error();
  range->user = flags.user;
  const auto exemptions =
      flags.exempt.empty() ? Result(std::vector<fleet::Exemption>()) : fleet::ReadExemptions(flags.exempt);
  if (!exemptions) return exemptions.error();
  const auto prices = PricesOf(flags);
  if (!prices) return prices.error();
  auto store = fleet::Store::OpenForReading(flags.store.target);
  if (!store) return store.error();
  const auto sums = store->SumsOf(*range, *exemptions);
  if (!sums) return sums.error();
  fleet::Report report = fleet::ReportOn(*sums, by, *exemptions, *prices);
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
  if (!flags.prices.empty()) inputs.Add(flags.prices);
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
    nlohmann::ordered_json json = ToJson(report);
    json["database"] = MaskUrl(flags.store.target);
    if (auto written = WriteJson(flags.json, json); !written) return Fail(written.error(), kExitFailure);
  }
  if (flags.csv.wanted()) {
    if (auto written = flags.csv.Write(CsvOf(report)); !written) return Fail(written.error(), kExitFailure);
  }
  if (flags.markdown.wanted()) {
    const auto written = flags.markdown.Write(ToMarkdown(report, {flags.user}));
    if (!written) return Fail(written.error(), kExitFailure);
  }
  if (flags.html.wanted()) {
    const std::string page = ToHtml(report, {flags.user});
    if (auto written = flags.html.Write(page); !written) return Fail(written.error(), kExitFailure);
  }
  if (AnyToStandardOutput({&flags.json, &flags.csv, &flags.html, &flags.markdown})) return 0;
  if (report.runs == 0) {
    Print(stdout, "no runs{} in '{}'{}\n", flags.user.empty() ? "" : " of " + flags.user,
          MaskUrl(flags.store.target), flags.store.since.empty() ? "" : " since then");
    return 0;
  }
  PrintLaidOut(stdout,
               ToText(report, {flags.user}, flags.store.since, LaidOut(LocaleIsUtf8(), OutputColumns())));
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
  auto* price = app.add_option("--price", flags->price,
                               "Of a device hour, in any currency: what it costs is shown as well")
                    ->check(CLI::NonNegativeNumber);
  app.add_option("--prices", flags->prices,
                 "Of each kind of device: machines with their prices, as for fullbore plan (docs/plan.md)")
      ->type_name("TOML")
      ->excludes(price);
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
