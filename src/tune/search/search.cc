#include "tune/search/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "base/text.h"
#include "tune/knob/knob.h"
#include "tune/search/searcher.h"

namespace fullbore::tune {

namespace {

using nlohmann::json;

constexpr double kHopeless = 0.9;  // a trial whose interval lies below this part of the best is ended
constexpr double kStarved = 0.03;  // of the step, waiting: the loader sets the pace

// Those that only say something beside workers.
constexpr const char* kOfWorkers[] = {"prefetch_factor", "persistent_workers"};

// As a ratio of the rate.
double HalfWidth(const Rate& rate) { return (rate.high - rate.low) / 2 / rate.mean; }

bool IsOfWorkers(const std::string& knob) {
  return std::find(std::begin(kOfWorkers), std::end(kOfWorkers), knob) != std::end(kOfWorkers);
}

}  // namespace

// A setting that is what the script does anyway is none, and so is one of workers where there are none.
Settings Searcher::Normal(Settings settings) const {
  if (trials_.empty()) return settings;
  const Settings& baseline = trials_.front().settings;
  for (const auto& [name, own] : known_.own) {
    const auto at = settings.find(name);
    // What the script makes of an argument of its own, `{num_workers}`, is not known before it is given.
    const bool may_differ = IsOfWorkers(name) && !baseline.empty();
    if (at == settings.end() || baseline.contains(name) || may_differ) continue;
    if (at->second == own) settings.erase(at);
  }
  if (WorkersAreKnown(settings) && WorkersOf(settings) == 0) {
    for (const char* name : kOfWorkers) {
      if (!baseline.contains(name)) settings.erase(name);
    }
  }
  return settings;
}

// Not where they stand in the command under a name that only its author knows: `--jobs {jobs}`.
bool Searcher::WorkersAreKnown(const Settings& settings) const {
  const Settings& baseline = trials_.front().settings;
  const bool has_foreign = std::any_of(baseline.begin(), baseline.end(),
                                       [](const auto& each) { return KnobNamed(each.first) == nullptr; });
  return !has_foreign && (settings.contains("num_workers") || known_.Own("num_workers"));
}

const Trial* Searcher::Find(const Settings& settings) const {
  const auto at = std::find_if(trials_.begin(), trials_.end(),
                               [&](const Trial& trial) { return trial.settings == settings; });
  return at == trials_.end() ? nullptr : &*at;
}

const Trial* Searcher::Try(Settings settings, const std::string& why, std::optional<double> predicted) {
  settings = Normal(std::move(settings));
  if (const Trial* before = Find(settings)) return before;
  if (IsOver()) return nullptr;
  Request request{settings, why, false, predicted, std::nullopt};
  if (!trials_.empty() && Best().ok()) request.hopeless_below = kHopeless * Best().rate->low;
  Trial trial = laboratory_.Try(request);
  const bool says_nothing = laboratory_.IsOver() && !trial.ok();
  if (says_nothing && trial.why.empty()) return nullptr;
  trial.predicted = predicted;
  trial.apart = apart_;
  NoteRefusal(trial);
  trials_.push_back(std::move(trial));
  return says_nothing ? nullptr : &trials_.back();
}

// One that was refused with one value may be taken with another; the knobs with a search of their own are not worth a
// trial to find out, but for workers, of which one may be allowed.
void Searcher::NoteRefusal(const Trial& trial) {
  if (!trial.refused.empty() && trial.refused != "num_workers") refused_.insert(trial.refused);
}

Settings Searcher::With(const std::string& name, const json& value) const {
  Settings settings = Best().settings;
  settings[name] = value;
  return settings;
}

// What is faster outside the noise of both; else the answer would be another each time.
void Searcher::Adopt(const Trial* trial) {
  if (trial == nullptr || !IsFit(*trial) || trial->cut_short) return;
  const double noise = std::hypot(HalfWidth(*trial->rate), HalfWidth(*Best().rate));
  if (trial->rate->mean > std::max(kWorthTrying, 1 + noise) * BestRate())
    best_ = static_cast<size_t>(trial - trials_.data());
}

void Searcher::Skip(const std::string& knob, const std::string& why) {
  const std::string line = knob + ": " + why;
  const bool is_new = std::find(not_tried_.begin(), not_tried_.end(), line) == not_tried_.end();
  if (question_.knobs.contains(knob) && is_new) not_tried_.push_back(line);
}

std::optional<std::vector<int64_t>> Searcher::Given(const std::string& knob) const {
  const auto at = question_.values.find(knob);
  if (at == question_.values.end()) return std::nullopt;
  std::vector<int64_t> values;
  for (const json& value : at->second) {
    if (value.is_number_integer()) values.push_back(value.get<int64_t>());
  }
  std::sort(values.begin(), values.end());
  return values;
}

const Known& Searcher::Seen() {
  if (asked_about_ == best_) return seen_;
  asked_about_ = best_;
  if (auto known = laboratory_.Learn(Best())) {
    seen_ = std::move(*known);
    seen_of_ = best_;
    predicted_.clear();
  }
  return seen_;
}

std::optional<double> Searcher::Predicted(int64_t workers, int64_t threads) {
  const Known& seen = Seen();
  if (!seen.replay) return std::nullopt;
  const auto [at, is_new] = predicted_.try_emplace({workers, threads});
  if (is_new) at->second = seen.replay(workers, threads);
  if (!at->second) return std::nullopt;
  return *at->second * trials_[seen_of_].rate->mean;
}

// ---- what is on or off ----

void Searcher::TrySwitch(const std::string& knob, const json& value, const std::string& why) {
  if (!MayTurn(knob) || question_.values.contains(knob)) return;
  Adopt(Try(With(knob, value), why));
}

void Searcher::Switches() {
  if (known_.device) {
    TrySwitch("tf32", true, "tensor cores for products in float32");
    TrySwitch("precision", "bf16", "half the bytes, and tensor cores");
    if (known_.images) TrySwitch("channels_last", true, "the layout that convolutions prefer");
    TrySwitch("cudnn_benchmark", true, "cuDNN's fastest algorithm for these shapes");
  } else {
    TrySwitch("precision", "bf16", "half the bytes");
    for (const char* knob : {"tf32", "cudnn_benchmark", "pin_memory"})
      Skip(knob, "the model is not on a device");
    if (known_.images) TrySwitch("channels_last", true, "the layout that convolutions prefer");
  }
  if (!known_.images) Skip("channels_last", "the batches are not images");
  if (1 / (1 - known_.optimizer) > kWorthTrying) {
    TrySwitch("optimizer", "fused",
              fmt::format("the optimizer takes {} of the step", FormatPercent(known_.optimizer)));
  } else {
    Skip("optimizer", fmt::format("it takes only {} of the step", FormatPercent(known_.optimizer)));
  }
}

void Searcher::OwnValues() {
  for (const auto& [name, values] : question_.values) {
    if (name == "num_workers" || name == "batch_size") continue;  // which have a search of their own
    if (IsOfWorkers(name) && WorkersAreKnown(Best().settings) && WorkersNow() == 0) {
      Skip(name, fmt::format("it needs loader workers, and {}", question_.knobs.contains("num_workers")
                                                                    ? "having none is fastest"
                                                                    : "there are none"));
      continue;
    }
    for (const json& value : values) {
      if (IsOver()) return;
      Adopt(Try(With(name, value), "a value you gave"));
    }
  }
}

void Searcher::Grid() {
  std::vector<Settings> all = {{}};
  for (const auto& [name, values] : question_.values) {
    std::vector<Settings> more;
    for (const Settings& settings : all) {
      for (const json& value : values) {
        more.push_back(settings);
        more.back()[name] = value;
      }
    }
    all = std::move(more);
  }
  std::vector<Request> requests;
  for (const Settings& settings : all) {
    const Settings normal = Normal(settings);
    const auto is_same = [&](const Request& request) { return request.settings == normal; };
    if (!Find(normal) && std::none_of(requests.begin(), requests.end(), is_same))
      requests.push_back({normal, "every combination", false, std::nullopt, std::nullopt});
  }
  for (Trial& trial : laboratory_.TryAll(requests)) trials_.push_back(std::move(trial));
}

Answer Searcher::Run() {
  const Trial* baseline = Try(question_.baseline, "the script as it is");
  if (baseline != nullptr && baseline->ok()) {
    known_ = laboratory_.Learn(*baseline).value_or(Known{});
    for (const auto& [name, value] : question_.baseline) known_.own[name] = value;
    seen_ = known_;
    if (question_.exhaustive) {
      Grid();
    } else {
      Switches();
      Batch();
      if (known_.device)
        TrySwitch("compile", true, "fewer and larger kernels");
      else
        Skip("compile", "the model is not on a device; --set compile=true tries it anyway");
      if (known_.fast_data) TrySwitch("fast_data", true, "measured to load the same batches in less time");
      Workers();
      loader_is_chosen_ = true;
      // What this loader delivers depends on the batch, too.
      if (WorkersNow() == 0 || Best().busy.value_or(1) < 1 - kStarved) Batch();
      if (known_.epochs && WorkersNow() > 0)
        TrySwitch("persistent_workers", true, "workers are started anew at each epoch");
      if (known_.device) TrySwitch("pin_memory", true, "copies to the device at the full speed of its link");
      Threads();
      OwnValues();
    }
    ended_early_ = IsOver();
    ProveTheBest();
    BatchApart();
  } else {
    ended_early_ = laboratory_.IsOver();
  }
  Answer answer = Conclude(question_, known_, std::move(trials_), std::move(proofs_));
  answer.larger_batch = std::move(larger_batch_);
  answer.ended_early = ended_early_;
  answer.known = std::move(known_);
  answer.not_tried = std::move(not_tried_);
  return answer;
}

std::optional<PairOfTrials> Laboratory::TryPair(const Request& /*before*/, const Request& /*after*/) {
  return std::nullopt;
}

std::vector<Trial> Laboratory::TryAll(const std::vector<Request>& requests) {
  std::vector<Trial> trials;
  for (const Request& request : requests) {
    if (IsOver()) break;
    Trial trial = Try(request);
    if (!IsOver() || trial.ok()) trials.push_back(std::move(trial));
  }
  return trials;
}

Answer Search(const Question& question, Laboratory& laboratory) {
  return Searcher(question, laboratory).Run();
}

}  // namespace fullbore::tune
