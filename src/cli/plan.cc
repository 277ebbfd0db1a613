// fullbore plan: the next purchase. The flags are described below, in Define.
#include "plan/plan.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <memory>

#include "base/print.h"
#include "base/text.h"
#include "cli/device_windows.h"
#include "cli/output.h"
#include "cli/results.h"
#include "cli/subcommand.h"
#include "cli/traces.h"
#include "cli/trials.h"
#include "explain/diagnose/diagnose.h"
#include "explain/diagnose/unslowed.h"
#include "plan/feed.h"
#include "plan/market_file.h"
#include "plan/plan_json.h"
#include "record/run_reader.h"

namespace fullbore::cli {

namespace {

constexpr double kMostPerStep = 1e9, kMostSamples = 1e15;
constexpr int64_t kMostGpus = 1024;

struct Flags {
  std::vector<std::string> what;
  std::string directory = kDefaultRunsDirectory;
  std::vector<std::string> devices;
  std::vector<int64_t> gpus;
  std::string prices, need, by, step_time;
  std::optional<double> budget, batch, samples;
  bool example = false;
  ResultFile json{"--json", kJsonResult};
  bool force = false;
};

// ---- what is asked ----

Result<const roofline::Device*> DeviceOf(const std::string& name) {
  if (const roofline::Device* device = roofline::DeviceMeant(name)) return device;
  return Error{ErrorCode::kInvalidArgument, fmt::format("--devices: no device is called '{}'", name),
               roofline::HintForDevice(name)};
}

// "2000/s", "2k/s" of people who leave out what they count.
Result<double> RateOf(const std::string& text) {
  std::string_view number = text;
  if (number.ends_with("/s")) number.remove_suffix(2);
  const auto rate = ParseDouble(number);
  if (rate && *rate > 0 && std::isfinite(*rate)) return *rate;
  return Error{ErrorCode::kInvalidArgument, fmt::format("--need: '{}' is no rate", text),
               "samples a second, for instance --need 2000/s"};
}

Result<plan::Goal> GoalOf(const Flags& flags) {
  if (!flags.need.empty() + !flags.by.empty() + flags.budget.has_value() > 1) {
    return Error{ErrorCode::kInvalidArgument, "--need, --by and --budget are goals, and it takes one of them",
                 ""};
  }
  plan::Goal goal;
  goal.budget = flags.budget;
  if (!flags.need.empty()) {
    const auto rate = RateOf(flags.need);
    if (!rate) return rate.error();
    goal.need_per_s = *rate;
  }
  if (!flags.by.empty()) {
    const auto seconds = ParsePositiveSeconds("--by", flags.by);
    if (!seconds) return seconds.error();
    goal.by_s = *seconds;
  }
  if (flags.budget && !(*flags.budget > 0)) {
    return Error{ErrorCode::kInvalidArgument, fmt::format("--budget: {} is no sum of money", *flags.budget),
                 "for instance --budget 500"};
  }
  if (flags.budget && flags.prices.empty()) {
    return Error{ErrorCode::kInvalidArgument, "--budget is about money, and there are no prices",
                 "add --prices FILE; fullbore plan --prices-example prints one to start from"};
  }
  return goal;
}

Result<plan::Request> RequestOf(const Flags& flags) {
  plan::Request request;
  for (const std::string& name : flags.devices) {
    const auto device = DeviceOf(name);
    if (!device) return device.error();
    request.devices.push_back(*device);
  }
  request.gpus = flags.gpus;
  request.samples = flags.samples;
  const auto goal = GoalOf(flags);
  if (!goal) return goal.error();
  request.goal = *goal;
  if (flags.prices.empty()) return request;
  auto market = plan::ReadMarket(flags.prices);
  if (!market) return market.error();
  request.market = *std::move(market);
  return request;
}

// ---- what is recorded ----

Result<plan::Recorded> RecordedRun(const std::string& path, const Flags& flags) {
  auto recording = record::ReadRun(path);
  if (!recording) return recording.error();
  const record::Stage* stage = diagnose::JudgedStage(*recording);
  std::optional<record::Recording> window;
  if (stage != nullptr && !stage->device_windows.empty()) {
    if (auto seen = ReadDeviceWindows(*stage)) window = *std::move(seen);
  }
  return plan::RecordedOf(*recording, window ? &*window : nullptr, flags.batch.value_or(0));
}

Result<plan::Recorded> RecordedTraces(const std::vector<std::string>& traces, const Flags& flags) {
  auto recording = ReadTraces(traces, false);
  if (!recording) return recording.error();
  if (!flags.step_time.empty()) {
    const auto step_s = ParsePositiveSeconds("--step-time", flags.step_time);
    if (!step_s) return step_s.error();
    recording = diagnose::Unslowed(std::move(*recording), *step_s * 1e9);
  }
  return plan::RecordedOf(*recording, nullptr, flags.batch.value_or(0));
}

// Each run is a recording of its own; traces are the ranks of one.
Result<std::vector<plan::Recorded>> RecordedBy(const Flags& flags) {
  std::vector<plan::Recorded> all;
  std::vector<std::string> traces;
  const std::vector<std::string> newest = {""};
  for (const std::string& word : flags.what.empty() ? newest : flags.what) {
    if (!word.empty() && MeansTraces({word})) {
      traces.push_back(word);
      continue;
    }
    const auto path = FindRun(flags.directory, word);
    if (!path) return path.error();
    auto recorded = RecordedRun(*path, flags);
    if (!recorded) return recorded.error();
    all.push_back(*std::move(recorded));
  }
  if (traces.empty()) return all;
  if (auto refused = RefuseRuns(traces); !refused) return refused.error();
  auto recorded = RecordedTraces(traces, flags);
  if (!recorded) return recorded.error();
  all.push_back(*std::move(recorded));
  return all;
}

// What they do is compared: it must be the same, and counted in the same way.
Result<void> AreOfOneProgram(const std::vector<plan::Recorded>& all) {
  for (const plan::Recorded& one : all) {
    const plan::Recorded& first = all.front();
    if (!one.refusal.empty() || !first.refusal.empty()) continue;
    if (!one.model.empty() && !first.model.empty() && one.model != first.model) {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("'{}' trains {}, and '{}' {}: plan compares recordings of one program",
                               first.id, first.model, one.id, one.model),
                   "ask of each by itself"};
    }
    if ((one.batch > 0) != (first.batch > 0)) {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("'{}' counts samples and '{}' does not: they cannot be compared",
                               one.batch > 0 ? one.id : first.id, one.batch > 0 ? first.id : one.id),
                   "--batch N says how many samples a step takes where they are not counted"};
    }
  }
  return {};
}

// ---- what is said ----

class Text {
 public:
  Text(const plan::Plan& plan, const plan::Request& request) : plan_(plan), request_(request) {}

  void Print() const {
    for (const plan::Recorded& one : plan_.recorded) Head(one);
    Speeds();
    Costs();
    for (const std::string& sentence : plan::Sentences(plan_, request_)) {
      Line("");
      PrintWrapped(sentence, 2, 2);
    }
    WhatIsNotTold();
    Line("");
    if (AnyFigures() && request_.market.offers.empty())
      PrintWrapped(
          "Nothing is known of prices and other machines: rows are on the recorded machine's cores. "
          "fullbore plan --prices-example > prices.toml is a file to edit and give with --prices.",
          2, 2);
    if (AnyFigures()) PrintWrapped("How far to trust it: docs/plan.md", 2, 2);
  }

 private:
  template <typename... Arguments>
  static void Line(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    const std::string line = fmt::format(format, std::forward<Arguments>(arguments)...);
    fullbore::Print(stdout, "{}\n",
                    Printable(line.substr(0, line.find_last_not_of(' ') + 1), LocaleIsUtf8()));
  }

  bool AnyFigures() const {
    return std::ranges::any_of(plan_.rows, [](const plan::Row& row) { return row.estimate.why_not.empty(); });
  }

  void Head(const plan::Recorded& one) const {
    if (!one.refusal.empty()) return PrintWrapped(fmt::format("{}: {}", one.id, one.refusal), 2, 4);
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
    PrintWrapped(text, 2, 4);
    if (one.loader) Loader(one);
  }

  // What the loader delivers at most: known also where the device is not.
  void Loader(const plan::Recorded& one) const {
    if (one.cores.logical <= 0) return;
    const auto at_most = [&](const plan::Cores& cores) { return plan::LoaderAlone(one, cores); };
    const plan::Range here = at_most(one.cores);
    const char* unit = one.batch > 0 ? "samples" : "steps";
    std::string text = fmt::format(
        "whatever the device, its loader feeds at most {} {}/s ({}) on {:g} core{}", Count(here.expected),
        unit, Span(here, Count), one.cores.logical, one.cores.logical == 1 ? "" : "s");
    for (const plan::Cores& cores : OtherCores(one))
      text += fmt::format(", {} on {:g}", Count(at_most(cores).expected), cores.logical);
    PrintWrapped(text, 2, 4);
  }

  // Those of the machines of the file; without one, some that people would ask for.
  std::vector<plan::Cores> OtherCores(const plan::Recorded& one) const {
    constexpr size_t kMost = 6;
    constexpr double kFarthest = 16;  // times the recorded ones: what else binds there, nobody has seen
    std::vector<plan::Cores> others;
    const auto add = [&](const plan::Cores& cores) {
      const bool known = cores.logical == one.cores.logical ||
                         std::ranges::find(others, cores.logical, &plan::Cores::logical) != others.end();
      const bool near = cores.logical <= kFarthest * one.cores.logical;
      if (near && !known && others.size() < kMost) others.push_back(cores);
    };
    for (const plan::Offer& offer : request_.market.offers)
      add({offer.machine.cores, offer.machine.threads_per_core});
    for (const double times : {2.0, 4.0}) {
      if (request_.market.offers.empty()) add({one.cores.logical * times, one.cores.threads_per_core});
    }
    std::ranges::sort(others, {}, &plan::Cores::logical);
    return others;
  }

  static std::string Span(const plan::Range& range, auto&& format) {
    return fmt::format("{} to {}", format(range.low), format(range.high));
  }
  static std::string Count(double count) { return FormatCount(count); }
  static std::string Money(double money) {
    return money < 0.095   ? fmt::format("{:.2g}", money)
           : money < 999.5 ? fmt::format("{:.2f}", money)
                           : FormatCount(std::round(money));
  }

  std::string Title(const plan::Row& row) const {
    std::string title = plan::NameOf(row.estimate.setup);
    const plan::Recorded& from = plan_.recorded[row.recording];
    if (plan_.recorded.size() > 1 && from.batch > 0) title += fmt::format(" b{:g}", from.batch);
    return Elide(title, 17, LocaleIsUtf8());
  }

  static bool IsShown(const plan::Row& row) {
    return row.estimate.why_not.empty() || row.estimate.not_told.empty();
  }

  // At 80 columns. What no row knows has no column.
  void Speeds() const {
    if (std::ranges::none_of(plan_.rows, IsShown)) return;
    const auto any = [&](auto&& has) { return std::ranges::any_of(plan_.rows, has); };
    const bool cores = any([](const plan::Row& row) { return row.estimate.cores.logical > 0; });
    const bool counted = plan_.recorded[plan_.rows.front().recording].batch > 0;
    const bool fed = any([](const plan::Row& row) { return row.estimate.cores_needed.has_value(); });
    const bool read = any([](const plan::Row& row) { return row.estimate.read_bytes_per_s.has_value(); });
    const bool held = any([](const plan::Row& row) { return row.estimate.host_bytes_needed.has_value(); });
    Line("");
    if (fed || read || held) Line("  {:<60} {}", "", "needs, to be fed");
    Line("  {:<17}{:>5} {:>9} {:>16}  {:<8} {:>5} {:>5} {:>6}", "", cores ? "cores" : "",
         counted ? "samples/s" : "steps/s", "range", "binds", fed ? "cores" : "", read ? "MB/s" : "",
         held ? "RAM" : "");
    for (const plan::Row& row : plan_.rows) {
      if (IsShown(row)) Speed(row);
    }
    if (any([](const plan::Row& row) { return row.measured; })) Line("  * as it was recorded");
  }

  void Speed(const plan::Row& row) const {
    const plan::Estimate& estimate = row.estimate;
    const auto if_known = [](const std::optional<double>& value, auto&& format) {
      return value ? format(*value) : std::string();
    };
    const std::string cores =
        estimate.cores.logical > 0 ? fmt::format("{:g}", estimate.cores.logical) : std::string();
    if (!estimate.why_not.empty()) return Line("  {:<17}{:>5} {}", Title(row), cores, estimate.why_not);
    const auto whole = [](double value) { return fmt::format("{:.0f}", std::max(1.0, std::ceil(value))); };
    Line("  {:<17}{:>5} {:>9} {:>16}{} {:<8} {:>5} {:>5} {:>6}", Title(row), cores,
         Count(estimate.per_s.expected), Span(estimate.per_s, Count), row.measured ? "*" : " ",
         Name(estimate.binds), if_known(estimate.cores_needed, whole),
         if_known(estimate.read_bytes_per_s, [&](double bytes) { return whole(bytes / 1e6); }),
         if_known(estimate.host_bytes_needed, FormatBytes));
  }

  void Costs() const {
    std::vector<const plan::Row*> priced;
    for (const plan::Row& row : plan_.rows) {
      if (row.per_unit) priced.push_back(&row);
    }
    if (priced.empty()) return;
    std::ranges::stable_sort(priced, {}, [](const plan::Row* row) { return row->per_unit->expected; });
    const plan::Row& first = *priced.front();
    const bool counted = plan_.recorded[first.recording].batch > 0;
    Line("");
    Line("  {:<17}{:>7} {:>9} {:>15} {:>8} {:>8} {}", plan_.currency, "an hour",
         counted ? "a million" : "1,000", "range", first.per_epoch ? "an epoch" : "",
         first.per_run ? "the run" : "", "binds");
    for (const plan::Row* row : priced) {
      Line("  {:<17}{:>7} {:>9} {:>15} {:>8} {:>8} {}", Title(*row), Money(*row->per_hour),
           Money(row->per_unit->expected), Span(*row->per_unit, Money),
           row->per_epoch ? Money(row->per_epoch->expected) : "",
           row->per_run ? Money(row->per_run->expected) : "", Name(row->estimate.binds));
    }
  }

  void WhatIsNotTold() const {
    for (const plan::NotTold& one : plan_.not_told) {
      Line("");
      PrintWrapped(fmt::format("not told: {}: {}", one.what, one.why), 2, 4);
      if (!one.command.empty()) PrintWrapped("record: " + one.command, 4, 6);
    }
  }

  const plan::Plan& plan_;
  const plan::Request& request_;
};

int Run(Flags& flags) {
  if (flags.example) {
    PrintLaidOut(stdout, plan::kPricesExample);
    return 0;
  }
  InputFiles inputs = InputsNamed(flags.directory, flags.what);
  if (!flags.prices.empty()) inputs.Add(flags.prices);
  if (auto judged = JudgeResults({&flags.json}, inputs, flags.force, flags.directory); !judged)
    return Fail(judged.error(), kExitUsage);
  const auto request = RequestOf(flags);
  if (!request) return Fail(request.error(), StatusOf(request.error()));
  auto recorded = RecordedBy(flags);
  if (!recorded) return Fail(recorded.error(), StatusOf(recorded.error()));
  if (auto same = AreOfOneProgram(*recorded); !same) return Fail(same.error(), kExitUsage);
  const plan::Plan plan = plan::PlanFor(*std::move(recorded), *request);
  if (flags.json.wanted()) {
    if (auto written = WriteJson(flags.json, plan::ToJson(plan, *request)); !written)
      return Fail(written.error(), kExitFailure);
  }
  if (!AnyToStandardOutput({&flags.json})) Text(plan, *request).Print();
  return 0;
}

// For options whose help shall not carry the library's own words.
CLI::Validator FromOneTo(double most, const char* what) {
  return CLI::Validator(
      [most, what](std::string& text) -> std::string {
        const auto number = ParseDouble(text);
        return number && *number >= 1 && *number <= most ? ""
                                                         : fmt::format("'{}' is no number of {}", text, what);
      },
      "");
}

void AddGoals(CLI::App& app, Flags& flags) {
  app.add_option("--need", flags.need, "The cheapest that does so many samples a second")->type_name("N/s");
  app.add_option("--by", flags.by, "The cheapest that ends the whole run within this time")
      ->type_name("TIME");
  app.add_option("--budget", flags.budget, "The fastest that does the whole run for so much; with --prices")
      ->type_name("MONEY");
}

void AddSetups(CLI::App& app, Flags& flags) {
  app.add_option("--devices", flags.devices, "For instance t4,v100,a100,h100,mi300x")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("NAME");
  app.add_option("--gpus", flags.gpus, "How many of them; default: 1,2,4,8")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check([](const std::string& text) -> std::string {
        const auto gpus = ParseInt(text);
        return gpus && *gpus >= 1 && *gpus <= kMostGpus
                   ? ""
                   : fmt::format("'{}' is no number of devices, from 1 to {}: for instance --gpus 1,2,4,8",
                                 text, kMostGpus);
      })
      ->type_name("N");
  app.add_option("--prices", flags.prices, "Machines that can be had, with their prices (docs/plan.md)")
      ->type_name("TOML");
  app.add_flag("--prices-example", flags.example, "Print such a file to start from");
}

Handler Define(CLI::App& app, const Invocation&) {
  auto flags = std::make_shared<Flags>();
  app.add_option(
      "RUN|TRACE", flags->what,
      "Runs (ids, the beginning of one, or run files; default: the newest), each a recording of its own:\n"
      "of other devices or batch sizes. Or traces, which are the ranks of one recording");
  AddSetups(app, *flags);
  AddGoals(app, *flags);
  app.add_option("--samples", flags->samples, "Of the whole run; default: as many as were recorded")
      ->check(FromOneTo(kMostSamples, "samples"))
      ->type_name("N");
  app.add_option("--batch", flags->batch,
                 "Samples that a device takes in a step, where the recording does not count them")
      ->check(FromOneTo(kMostPerStep, "samples"))
      ->type_name("N");
  app.add_option("--step-time", flags->step_time,
                 "Traces: what a step takes without the profiler, by a clock of yours")
      ->type_name("TIME");
  app.add_option("-o,--output", flags->directory, "Where runs are kept")
      ->type_name("DIR")
      ->default_str(kDefaultRunsDirectory);
  AddResult(app, flags->json, "Write the plan to this file");
  AddForce(app, flags->force);
  return [flags] { return Run(*flags); };
}

}  // namespace

const Subcommand kPlan = {"plan", "What the recorded run would take, and cost, on other devices and machines",
                          "fullbore plan last --devices t4,v100,a100 --gpus 1,2 --prices prices.toml",
                          Define};

}  // namespace fullbore::cli
