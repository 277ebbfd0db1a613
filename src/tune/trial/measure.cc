#include "tune/trial/measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/clock.h"
#include "base/text.h"
#include "measure/collect/run.h"
#include "tune/trial/memory.h"
#include "tune/trial/printed.h"
#include "tune/trial/throughput.h"
#include "tune/trial/trial_places.h"

namespace fullbore::tune {

namespace {

constexpr int64_t kBetweenLooksNs = kNsPerSecond / 4;
// Between two looks at what it wrote, times what the last one took.
constexpr int64_t kBetweenLooksAtFiles = 50;
// After the first step, a step that takes this much longer than any before is none: the program hangs.
constexpr double kTimesTheLongest = 20, kLeastSilenceS = 30;
// What the hook says of settings comes with what they change: the loader, the optimizer, the model.
constexpr int64_t kStepsUntilFacts = 20;

// What the recording says of one setting.
enum class Taken : uint8_t { kUnknown, kApplied, kRefused };

// Looks at one trial while it runs.
class Watch {
 public:
  Watch(const MeasureOptions& options, const Settings& for_hook, const TrialPlaces& places,
        std::optional<MetricReader> reader)
      : options_(options),
        for_hook_(for_hook),
        places_(places),
        reader_(std::move(reader)),
        begin_ns_(MonotonicNs()) {}

  void OnStep(const record::RankInfo& rank, const record::Step& step);
  bool IsOver(int64_t now_ns);
  bool Stands(int64_t now_ns);  // of one that takes turns
  std::optional<Estimate> Now() const {
    return reader_ ? SteadyReadings(reader_->values()) : throughput_.Steady();
  }
  // Of a program that its steps measure.
  std::optional<Estimate> InSteps() const {
    return reader_ ? std::nullopt : throughput_.Steady(/*in_steps=*/true);
  }
  void ReadTheRest() {
    if (reader_) reader_->Read(places_.LogPath());
  }

  // Whether the throughput is known as well as was asked for.
  bool IsNarrow(const Estimate& estimate) const;
  bool hung() const { return hung_; }
  bool out_of_time() const { return out_of_time_; }
  // Why it could not be measured in its time.
  std::string TooLate() const;
  const std::string& wrote_too_much() const { return wrote_too_much_; }
  bool cut_short() const { return cut_short_; }
  bool saw_steps() const { return throughput_.steps() > 0; }
  const std::vector<double>& first_losses() const { return first_losses_; }
  // The first setting that was refused, or that nothing in the script took; nothing if all are made.
  struct Refusal {
    std::string setting, why;
  };
  std::optional<Refusal> Refused() const;

 private:
  bool IsSilent(int64_t now_ns);
  std::optional<Warm> WhatItWas() const;

  const MeasureOptions& options_;
  const Settings& for_hook_;
  const TrialPlaces& places_;
  std::optional<MetricReader> reader_;
  Throughput throughput_;
  std::map<std::string, std::string> refused_;  // reasons by setting
  std::set<std::string> applied_;
  std::vector<double> first_losses_;
  int64_t begin_ns_;
  int64_t first_ns_ = 0, last_ns_ = 0;  // of steps or readings, as we learned of them
  int64_t next_look_ns_ = 0, next_look_at_files_ns_ = 0;
  std::string wrote_too_much_;  // how much that was
  int64_t longest_ns_ = 0;
  size_t readings_ = 0;
  std::optional<Warm> warm_;
  bool hung_ = false, cut_short_ = false, out_of_time_ = false;
};

int64_t WorkersOf(const record::RankInfo& rank) {
  int64_t workers = 0;
  for (const record::Loader& loader : rank.loaders) workers += loader.num_workers;
  return workers;
}

void Watch::OnStep(const record::RankInfo& rank, const record::Step& step) {
  throughput_.Add(rank.rank, step, PreparedBatches(rank));
  if (options_.turns != nullptr) options_.turns->OnStep(rank.rank, step, WorkersOf(rank));
  longest_ns_ = std::max(longest_ns_, step.wall_ns);
  const auto losses = rank.facts.find("first_losses");
  if (rank.rank == 0 && losses != rank.facts.end())
    first_losses_ = Numbers(nlohmann::json::parse(losses->second, nullptr, /*allow_exceptions=*/false));
  for (const auto& [name, value] : for_hook_) {
    const auto fact = rank.facts.find("setting." + name);
    if (fact == rank.facts.end()) continue;
    const auto said = nlohmann::json::parse(fact->second, nullptr, /*allow_exceptions=*/false);
    if (!said.is_string()) continue;
    const auto text = said.get<std::string>();
    constexpr std::string_view kRefused = "refused: ";
    if (text.starts_with(kRefused)) refused_[name] = text.substr(kRefused.size());
    if (text == "applied") applied_.insert(name);
  }
}

std::optional<Watch::Refusal> Watch::Refused() const {
  if (!refused_.empty()) return Refusal{refused_.begin()->first, refused_.begin()->second};
  for (const auto& [name, value] : for_hook_) {
    if (applied_.contains(name)) continue;
    // Handed to every program in its environment, too; without the hook, nobody says more about it.
    if (name == "intraop_threads" && !saw_steps()) continue;
    return Refusal{
        name, saw_steps() ? "nothing in the script was seen to use it"
                          : fmt::format("no PyTorch training was seen; put {{{}}} into the command", name)};
  }
  return std::nullopt;
}

std::string Watch::TooLate() const {
  const char* missing = first_ns_ != 0 ? "enough was seen to measure"
                        : reader_      ? "a first value was printed"
                                       : "a first step was seen";
  return fmt::format("{} ended before {}", options_.end_of, missing);
}

bool Watch::IsNarrow(const Estimate& estimate) const {
  const Precision& wanted = options_.precision;
  if (estimate.HalfWidth() > wanted.half_width) return false;
  // Readings say nothing of their own time: what they are averages of is as old as the first of them.
  if (reader_) return static_cast<double>(last_ns_ - first_ns_) / 1e9 >= wanted.least_seconds;
  return estimate.steps >= wanted.least_steps && estimate.seconds >= wanted.least_seconds;
}

bool Watch::IsSilent(int64_t now_ns) {
  const double longest_s = static_cast<double>(longest_ns_) / 1e9;
  const double patience_s =
      first_ns_ == 0 || reader_
          ? options_.patience_s
          : std::min(options_.patience_s, std::max(kLeastSilenceS, kTimesTheLongest * longest_s));
  const int64_t since_ns = first_ns_ == 0 ? begin_ns_ : last_ns_;
  return static_cast<double>(now_ns - since_ns) / 1e9 > patience_s;
}

// For turns, once what begins is over and there is something to be measured.
std::optional<Warm> Watch::WhatItWas() const {
  if (options_.warm_after) {
    if (throughput_.lead_steps() < *options_.warm_after) return std::nullopt;
    return Warm{};
  }
  const auto estimate = Now();
  if (!estimate || estimate->steps < options_.precision.least_steps ||
      estimate->seconds < options_.precision.least_seconds)
    return std::nullopt;
  const double steps = static_cast<double>(estimate->steps) / estimate->seconds;
  return Warm{steps * (1 + estimate->HalfWidth()), 1 - estimate->busy.value_or(1), 1, estimate->warmup_steps};
}

bool Watch::Stands(int64_t now_ns) {
  if (!warm_) warm_ = WhatItWas();
  if (!options_.turns->Stands(warm_)) return false;
  last_ns_ = now_ns;  // it cannot hang now
  return true;
}

bool Watch::IsOver(int64_t now_ns) {
  if (now_ns < next_look_ns_) return false;
  next_look_ns_ = now_ns + kBetweenLooksNs;
  if (reader_) reader_->Read(places_.LogPath());
  const size_t seen = reader_ ? reader_->values().size() : static_cast<size_t>(throughput_.steps());
  if (seen > readings_) {
    readings_ = seen;
    last_ns_ = now_ns;
    if (first_ns_ == 0) first_ns_ = now_ns;
  }
  if (now_ns >= next_look_at_files_ns_) {
    const int64_t begin_ns = MonotonicNs();
    wrote_too_much_ = places_.WroteTooMuch();
    const int64_t end_ns = MonotonicNs();
    next_look_at_files_ns_ = end_ns + kBetweenLooksAtFiles * (end_ns - begin_ns) + kNsPerSecond;
  }
  if (!wrote_too_much_.empty() || !refused_.empty()) return true;
  if (throughput_.steps() >= kStepsUntilFacts && Refused()) return true;
  out_of_time_ = options_.end_ns != 0 && now_ns > options_.end_ns;
  if (out_of_time_) return true;
  hung_ = IsSilent(now_ns);
  if (hung_) return true;
  if (options_.turns != nullptr) return options_.turns->IsOver();
  if (first_ns_ == 0) return false;
  if (static_cast<double>(now_ns - first_ns_) / 1e9 > options_.precision.most_seconds) return true;
  const auto estimate = Now();
  if (!estimate) return false;
  const bool enough = reader_ || estimate->steps >= options_.precision.least_steps;
  cut_short_ = enough && options_.hopeless_below && estimate->high < *options_.hopeless_below;
  return cut_short_ || IsNarrow(*estimate);
}

std::map<std::string, std::string> EnvironmentOf(const Settings& for_hook, const TrialPlaces& places,
                                                 bool takes_turns) {
  std::map<std::string, std::string> environment = places.Environment();
  environment["PYTHONUNBUFFERED"] = "1";  // what is printed is read at once
  // Also without any: the hook then says the losses that the others' are compared with.
  environment["FULLBORE_SETTINGS"] = ToJson(for_hook).dump();
  if (takes_turns) environment["FULLBORE_TURNS"] = "1";  // the hook then times the cores, too
  if (const auto threads = for_hook.find("intraop_threads"); threads != for_hook.end())
    environment["OMP_NUM_THREADS"] = environment["MKL_NUM_THREADS"] = ToText(threads->second);
  return environment;
}

void SetOutcome(const Watch& watch, const collect::RunOutcome& run, const std::string& output_path,
                Trial& trial) {
  const auto refused = watch.Refused();
  const std::string memory = run.was_ended ? "" : SaysOutOfMemory(EndOf(output_path));
  const auto estimate = watch.Now();
  if (run.out_of_memory || (run.exit_status != 0 && !memory.empty())) {
    trial.outcome = Outcome::kOutOfMemory;
    trial.why = memory.empty() ? "the kernel killed it for lack of memory" : memory;
  } else if (!run.was_ended && run.exit_status != 0) {
    trial.outcome = Outcome::kCrashed;
    trial.why = fmt::format("exit status {}: {}", run.exit_status, LastWords(output_path));
  } else if (!watch.wrote_too_much().empty()) {
    trial.outcome = Outcome::kRefused;
    trial.why = watch.wrote_too_much();
  } else if (refused) {
    trial.outcome = Outcome::kRefused;
    trial.refused = refused->setting;
    trial.why = refused->setting + ": " + refused->why;
  } else if (watch.hung()) {
    trial.outcome = Outcome::kHung;
    trial.why = watch.saw_steps() ? "no further step" : "no first step";
  } else if (!estimate) {
    trial.outcome = Outcome::kEndedEarly;
    trial.why = watch.out_of_time() ? watch.TooLate()
                : run.was_ended     ? "too few steps were seen to measure"
                                    : "it ended before it could be measured";
  }
}

Rate RateOf(const Estimate& estimate) { return {estimate.rate, estimate.low, estimate.high}; }

// Of an estimate that is not as narrow as wanted, or narrow after too little.
std::string WhyNotKnown(const Estimate& estimate, const Precision& wanted) {
  if (estimate.HalfWidth() > wanted.half_width)
    return fmt::format("noisy, +-{}", FormatPercent(estimate.HalfWidth()));
  if (estimate.seconds == 0) return fmt::format("short, {} values", estimate.steps);
  return fmt::format("short, {} steps in {:.1f} s", estimate.steps, estimate.seconds);
}

}  // namespace

Result<Measured> Measure(const MeasureOptions& options, const Settings& settings) {
  auto places = TrialPlaces::Make(options.shelter, options.log);
  if (!places) return places.error();
  const Substituted substituted = Substitute(options.command, settings);
  std::optional<MetricReader> reader;
  if (!options.metric.empty()) {
    auto made = MetricReader::Make(options.metric, options.log);
    if (!made) return made.error();
    reader = std::move(*made);
  }
  Watch watch(options, substituted.for_hook, *places, std::move(reader));
  collect::RunOptions run;
  run.command = substituted.command;
  run.directory = options.directory;
  run.name = options.name;
  run.tags = options.tags;
  for (const auto& [name, value] : settings) run.tags[name] = ToText(value);
  run.hook_directory = options.hook_directory;
  run.package_directory = options.package_directory;
  run.quiet = true;
  run.trial = collect::TrialRun{
      EnvironmentOf(substituted.for_hook, *places, options.turns != nullptr),
      places->Apart(run.command),
      [&](const record::RankInfo& rank, const record::Step& step) { watch.OnStep(rank, step); },
      [&](int64_t now_ns) { return watch.IsOver(now_ns) || (options.given_up && options.given_up()); },
      {}};
  if (options.turns != nullptr)
    run.trial->turns = {[&](int64_t now_ns) { return watch.Stands(now_ns); },
                        [&] { options.turns->OnStood(); }, options.turns->word()};
  const int64_t begin_ns = MonotonicNs();
  const collect::RunResult result = collect::Run(run);
  if (const auto* failure = std::get_if<collect::RunFailure>(&result)) return failure->error;
  const auto& outcome = std::get<collect::RunOutcome>(result);
  watch.ReadTheRest();
  Measured measured;
  measured.run_file = outcome.path;
  measured.interrupted_by = outcome.interrupted_by;
  measured.out_of_time = watch.out_of_time();
  Trial& trial = measured.trial;
  trial.settings = settings;
  trial.run = outcome.run_id;
  trial.seconds = static_cast<double>(MonotonicNs() - begin_ns) / 1e9;
  SetOutcome(watch, outcome, places->output_path(), trial);
  if (const MemoryUse memory = MemoryUseOf(outcome.path); memory.peak_bytes) {
    trial.peak_memory_bytes = memory.peak_bytes;
    trial.memory_filled = memory.filled;
  }
  trial.first_losses = watch.first_losses();
  if (const auto estimate = watch.Now()) {
    trial.steps = estimate->steps;
    trial.busy = estimate->busy;
    if (!estimate->counts_samples) trial.unit = kStepsPerSecond;
    if (trial.outcome == Outcome::kOk) {
      trial.rate = RateOf(*estimate);
      if (const auto steps = watch.InSteps()) trial.steps_rate = RateOf(*steps);
      trial.cut_short = watch.cut_short();
      trial.noisy = !trial.cut_short && !watch.IsNarrow(*estimate);
      if (trial.noisy) trial.why = WhyNotKnown(*estimate, options.precision);
    }
  }
  return measured;
}

}  // namespace fullbore::tune
