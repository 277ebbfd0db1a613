// fullbore plan: the next purchase. The flags are described below, in Define.
#include "plan/plan.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <memory>

#include "base/laid_out.h"
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
#include "plan/market_file.h"
#include "plan/plan_json.h"
#include "plan/plan_terminal.h"
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
  if (!AnyToStandardOutput({&flags.json}))
    PrintLaidOut(stdout, ToText(plan, *request, LaidOut(LocaleIsUtf8(), OutputColumns())));
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
