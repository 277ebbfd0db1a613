#include "tune/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "base/text.h"
#include "tune/knee.h"

namespace fullbore::tune {

namespace {

using nlohmann::json;

constexpr double kHopeless = 0.9;      // a trial whose interval lies below this part of the best is ended
constexpr double kWorthTrying = 1.02;  // times as fast: less is not told from noise
constexpr double kWaitsLittle = 0.02;  // of the step: more workers cannot gain what is worth trying
constexpr int64_t kBatchProbe = 4;     // the second probe of the batch, in first ones
constexpr int64_t kLargestProbe = 64;  // the largest batch that is thought of, in first ones
// By how much two peaks may differ for other reasons than the batch: what a start held, blocks of an allocator. On the
// script of tests/tune/test_tune_memory.py 9 MB were seen.
constexpr double kMemoryUnsure = 16 << 20;
constexpr int64_t kWorkersACore = 4;               // workers that wait for storage more than they compute
constexpr int kMostBatches = 6, kMostWorkers = 5;  // trials
// A trial that waited more than this says what the loader delivers; one that waited less, only that it delivers enough.
constexpr double kStarved = 0.03;
constexpr double kLeastBusy = 0.02;  // below, what the training could take is not told from its wait

// The samples/s that the training would take, at the batch of this trial, if it never waited for them.
double TrainingRate(const Trial& trial) {
  return trial.rate->mean / std::clamp(trial.busy.value_or(1), kLeastBusy, 1.0);
}

class Searcher {
 public:
  Searcher(const Question& question, Laboratory& laboratory) : question_(question), laboratory_(laboratory) {}
  Answer Run();

 private:
  const Trial* Try(Settings settings, const std::string& why, std::optional<double> predicted = std::nullopt);
  const Trial* Find(const Settings& settings) const;
  const Trial& Best() const { return trials_[best_]; }
  bool IsFit(const Trial& trial) const { return trial.ok() && LeavesHeadroom(trial, trials_.front()); }
  double BestRate() const { return Best().rate->mean; }
  Settings With(const std::string& name, const json& value) const;
  Settings Normal(Settings settings) const;
  void Adopt(const Trial* trial);
  bool MayTurn(const std::string& knob) const {
    return question_.knobs.contains(knob) && !refused_.contains(knob) && !laboratory_.IsOver();
  }
  void Skip(const std::string& knob, const std::string& why);
  void NoteRefusal(const Trial& trial);
  std::optional<std::vector<int64_t>> Given(const std::string& knob) const;
  std::optional<double> Predicted(int64_t workers, int64_t threads) const;
  double Near() const { return NearBest(question_, *Best().rate); }
  double LoaderAtMost() const;

  void Switches();
  void TrySwitch(const std::string& knob, const json& value, const std::string& why);
  void Batch();
  bool LoaderIsFixed() const { return !question_.knobs.contains("num_workers") || loader_is_chosen_; }
  double RateOfBatch(const Trial& trial) const;
  std::optional<int64_t> NextBatch(const std::vector<BatchPoint>& points, int64_t first,
                                   int64_t largest) const;
  int64_t LargestSafe(int64_t first) const;
  void Workers();
  int64_t FirstGuess(int64_t most) const;
  int64_t Allowed(int64_t workers) const;
  const Trial* TryWorkers(int64_t workers, const std::string& why);
  void Threads();
  int64_t WorkersNow() const;
  void OwnValues();
  void Grid();
  void Finalists();

  const Question& question_;
  Laboratory& laboratory_;
  Known known_;
  std::vector<Trial> trials_;
  size_t best_ = 0;
  bool loader_is_chosen_ = false;
  std::set<std::string> refused_;  // knobs: whatever else is set, this script does not take them
  std::vector<std::string> not_tried_;
};

// A setting that is what the script does anyway is none.
Settings Searcher::Normal(Settings settings) const {
  for (const auto& [name, own] :
       {std::pair<std::string, std::optional<int64_t>>{"num_workers", known_.workers},
        {"batch_size", known_.batch}}) {
    const auto at = settings.find(name);
    const bool in_baseline = !trials_.empty() && trials_.front().settings.contains(name);
    if (at != settings.end() && own && !in_baseline && at->second == json(*own)) settings.erase(at);
  }
  return settings;
}

const Trial* Searcher::Find(const Settings& settings) const {
  const auto at = std::find_if(trials_.begin(), trials_.end(),
                               [&](const Trial& trial) { return trial.settings == settings; });
  return at == trials_.end() ? nullptr : &*at;
}

const Trial* Searcher::Try(Settings settings, const std::string& why, std::optional<double> predicted) {
  settings = Normal(std::move(settings));
  if (const Trial* before = Find(settings)) return before;
  if (laboratory_.IsOver()) return nullptr;
  Request request{settings, why, false, predicted, std::nullopt};
  if (!trials_.empty() && Best().ok()) request.hopeless_below = kHopeless * Best().rate->low;
  Trial trial = laboratory_.Try(request);
  if (laboratory_.IsOver() && !trial.ok()) return nullptr;
  trial.predicted = predicted;
  NoteRefusal(trial);
  trials_.push_back(std::move(trial));
  return &trials_.back();
}

// The reason begins with the name of the knob. One that was refused with one value may be taken with another; the knobs
// with a search of their own are not worth a trial to find out, but for workers, of which one may be allowed.
void Searcher::NoteRefusal(const Trial& trial) {
  if (trial.outcome != Outcome::kRefused) return;
  const std::string knob = trial.why.substr(0, trial.why.find(':'));
  if (knob != "num_workers") refused_.insert(knob);
}

Settings Searcher::With(const std::string& name, const json& value) const {
  Settings settings = Best().settings;
  settings[name] = value;
  if (name == "num_workers" && value == json(0)) {  // which go without workers
    settings.erase("prefetch_factor");
    settings.erase("persistent_workers");
  }
  return settings;
}

void Searcher::Adopt(const Trial* trial) {
  if (trial != nullptr && IsFit(*trial) && !trial->cut_short && trial->rate->mean > kWorthTrying * BestRate())
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

std::optional<double> Searcher::Predicted(int64_t workers, int64_t threads) const {
  if (!known_.replay || !trials_.front().ok()) return std::nullopt;
  const auto gain = known_.replay(workers, threads);
  if (!gain) return std::nullopt;
  return *gain * trials_.front().rate->mean;
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
      Skip(knob, "the model is on no device");
    if (known_.images) TrySwitch("channels_last", true, "the layout that convolutions prefer");
  }
  if (!known_.images) Skip("channels_last", "the batches are no images");
  if (1 / (1 - known_.optimizer) > kWorthTrying) {
    TrySwitch("optimizer", "fused",
              fmt::format("the optimizer takes {} of the step", FormatPercent(known_.optimizer)));
  } else {
    Skip("optimizer", fmt::format("it takes {} of the step", FormatPercent(known_.optimizer)));
  }
}

// ---- the batch ----

// The largest size, of those between which the batch doubles, that memory is sure to hold.
int64_t Searcher::LargestSafe(int64_t first) const {
  int64_t largest = first * kLargestProbe;
  if (const auto given = Given("batch_size")) largest = given->empty() ? first : given->back();
  std::map<int64_t, const Trial*> measured;
  for (const Trial& trial : trials_) {
    const auto at = trial.settings.find("batch_size");
    const int64_t batch = at == trial.settings.end() ? first : at->second.get<int64_t>();
    const bool died = trial.outcome == Outcome::kOutOfMemory || trial.outcome == Outcome::kCrashed;
    if ((died || !LeavesHeadroom(trial, trials_.front())) && batch > first)
      largest = std::min(largest, batch / 2);
    if (trial.peak_memory_bytes && trial.ok()) measured[batch] = &trial;
  }
  if (measured.size() < 2 || !known_.memory_limit) return largest;
  // By the two largest: where memory grows faster than the batch, they say it best.
  const auto& [at_big, big] = *measured.rbegin();
  const auto& [at_small, small] = *std::next(measured.rbegin());
  const auto limit = static_cast<double>(*known_.memory_limit);
  // Of several devices, peaks are sums, and the limit is that of one: the fullest says how much of it is taken.
  const bool by_device = known_.device && big->memory_filled && small->memory_filled;
  const double more = by_device ? (*big->memory_filled - *small->memory_filled) * limit
                                : static_cast<double>(*big->peak_memory_bytes - *small->peak_memory_bytes);
  if (more <= 0) return largest;
  const double a_sample = (more + kMemoryUnsure) / static_cast<double>(at_big - at_small);
  const double filled = big->memory_filled.value_or(static_cast<double>(*big->peak_memory_bytes) / limit);
  const double most = static_cast<double>(at_big) + std::max(0.0, kHeadroom - filled) * limit / a_sample;
  while (largest > first && static_cast<double>(largest) > most) largest /= 2;
  return std::max(largest, first);
}

// What a batch of that size is worth: how fast the training could take it, whatever the loader does, for that is tuned
// next. Where the training itself loads and will go on to, it is one line with the loading.
double Searcher::RateOfBatch(const Trial& trial) const {
  return LoaderIsFixed() && WorkersNow() == 0 ? trial.rate->mean : TrainingRate(trial);
}

// The samples/s that no number of workers brings more of; a larger batch than takes these gains nothing.
double Searcher::LoaderAtMost() const {
  constexpr double kNoLimit = 1e300;
  if (LoaderIsFixed()) {
    if (WorkersNow() == 0) return kNoLimit;
    return Best().busy.value_or(1) < 1 - kStarved ? BestRate() : kNoLimit;
  }
  if (known_.fetch_s <= 0) return kNoLimit;
  const auto cores = static_cast<double>(known_.cores);
  const double fetch_cpu_s = known_.fetch_cpu_s > 0 ? known_.fetch_cpu_s : known_.fetch_s;
  return std::min(static_cast<double>(kWorkersACore) * cores / known_.fetch_s, cores / fetch_cpu_s);
}

// The knee, as far as it is known by now, rounded up to a size.
std::optional<int64_t> Searcher::NextBatch(const std::vector<BatchPoint>& points, int64_t first,
                                           int64_t largest) const {
  const auto line = FitLine(points);
  if (!line) return std::nullopt;
  double best = line->RateAt(static_cast<double>(largest));
  for (const BatchPoint& point : points) best = std::max(best, point.rate);
  best = std::min(best, LoaderAtMost());
  const double knee = Knee(*line, best, Near()).value_or(static_cast<double>(largest));
  if (const auto given = Given("batch_size")) {
    for (const int64_t size : *given) {
      if (static_cast<double>(size) >= knee * 0.99) return std::min(size, largest);
    }
    return largest;
  }
  int64_t size = first;
  while (size > 1 && size % 2 == 0 && static_cast<double>(size) / 2 >= knee) size /= 2;
  while (static_cast<double>(size) < knee * 0.99) size *= 2;
  return std::min(size, largest);
}

void Searcher::Batch() {
  const auto given = Given("batch_size");
  if (!MayTurn("batch_size")) return;
  if (!known_.batch && (!given || given->empty()))
    return Skip("batch_size", "no loader with a batch size was seen");
  const int64_t first = known_.batch ? *known_.batch : given->front();
  std::vector<BatchPoint> points;
  const Settings rest = Best().settings;
  int tried = 0;
  const auto probe = [&](int64_t size, const std::string& why) {
    Settings settings = rest;
    settings["batch_size"] = size;
    const auto line = FitLine(points);
    const Trial* trial =
        Try(settings, why, line ? std::optional(line->RateAt(static_cast<double>(size))) : std::nullopt);
    ++tried;
    if (trial == nullptr || !IsFit(*trial)) return false;
    points.push_back({static_cast<double>(size), RateOfBatch(*trial)});
    return true;
  };
  if (!probe(first, "the first point of the line")) return;
  int64_t second = std::min(first * kBatchProbe, LargestSafe(first));
  while (second > first && !probe(second, "what a step costs apart from its samples")) {
    if (!MayTurn("batch_size")) return;
    second /= 2;
  }
  std::set<int64_t> done;
  while (tried < kMostBatches && !laboratory_.IsOver()) {
    const int64_t largest = LargestSafe(first);
    const auto next = NextBatch(points, first, largest);
    if (!next || !done.insert(*next).second) break;
    const auto has = [&](int64_t size) {
      return std::any_of(points.begin(), points.end(),
                         [&](const BatchPoint& point) { return point.batch == static_cast<double>(size); });
    };
    if (!has(*next) && !probe(*next, "the knee: from here on a larger batch gains little")) continue;
    const int64_t below = *next / 2;
    if (below >= 1 && !has(below) && !given && tried < kMostBatches) probe(below, "one size below the knee");
  }
  // The smallest that comes near the best of them, or takes all that a loader can deliver.
  const auto best = std::max_element(points.begin(), points.end(),
                                     [](const auto& a, const auto& b) { return a.rate < b.rate; });
  const double enough = Near() * std::min(best->rate, LoaderAtMost());
  const BatchPoint* chosen = &*best;
  for (const BatchPoint& point : points) {
    if (point.rate >= enough && point.batch < chosen->batch) chosen = &point;
  }
  Settings settings = rest;
  settings["batch_size"] = static_cast<int64_t>(chosen->batch);
  if (const Trial* trial = Find(Normal(settings))) best_ = static_cast<size_t>(trial - trials_.data());
}

// ---- the workers ----

// The number itself, or, where the user gave some, the smallest of those that is not less, or else the largest.
int64_t Searcher::Allowed(int64_t workers) const {
  const auto given = Given("num_workers");
  if (!given || given->empty()) return std::max<int64_t>(0, workers);
  for (const int64_t value : *given) {
    if (value >= workers) return value;
  }
  return given->back();
}

// The fewest that deliver what the training can take; by the replay where it can say, which knows of the cores, too.
int64_t Searcher::FirstGuess(int64_t most) const {
  double best = 0;
  for (int64_t workers = 0; workers <= most; ++workers)
    best = std::max(best, Predicted(workers, known_.threads).value_or(0));
  for (int64_t workers = 0; workers <= most && best > 0; ++workers) {
    if (Predicted(workers, known_.threads).value_or(0) >= 0.97 * best) return workers;
  }
  if (known_.fetch_s <= 0) return known_.cores;
  return std::clamp<int64_t>(static_cast<int64_t>(std::ceil(Near() * TrainingRate(Best()) * known_.fetch_s)),
                             1, most);
}

const Trial* Searcher::TryWorkers(int64_t workers, const std::string& why) {
  return Try(With("num_workers", workers), why, Predicted(workers, known_.threads));
}

void Searcher::Workers() {
  if (!MayTurn("num_workers")) return;
  const auto given = Given("num_workers");
  if (!known_.workers && !given) return Skip("num_workers", "no DataLoader was seen");
  const int64_t now = known_.workers.value_or(0);
  const double wait = 1 - Best().busy.value_or(1 - known_.wait);
  if (wait < kWaitsLittle && now <= 1)
    return Skip("num_workers",
                fmt::format("the training waits for data only {} of the time", FormatPercent(wait)));
  const int64_t most = given && !given->empty() ? given->back() : std::max(now, kWorkersACore * known_.cores);
  const size_t begin = trials_.size();
  std::map<int64_t, double> rates = {{now, BestRate()}};
  const auto probe = [&](int64_t workers, const std::string& why) {
    const Trial* trial = TryWorkers(workers, why);
    const bool measured = trial != nullptr && IsFit(*trial);
    rates[workers] = measured ? trial->rate->mean : 0;
    return measured;
  };
  const auto best_of = [&] {
    return std::max_element(rates.begin(), rates.end(),
                            [](const auto& a, const auto& b) { return a.second < b.second; });
  };
  const auto room = [&] { return trials_.size() - begin < kMostWorkers && !laboratory_.IsOver(); };
  int64_t workers = Allowed(FirstGuess(most));
  probe(workers, "the fewest that should deliver what the training takes");
  // Upwards while it pays: fetching may take longer beside others than it did alone.
  while (room() && best_of()->first == workers && workers < most) {
    const Trial* trial = Find(Normal(With("num_workers", workers)));
    if (trial == nullptr || 1 - trial->busy.value_or(1) < kWaitsLittle) break;
    // By what these workers delivered.
    const double each = trial->rate->mean / static_cast<double>(std::max<int64_t>(1, workers));
    const auto wanted = static_cast<int64_t>(std::ceil(Near() * TrainingRate(*trial) / each));
    const int64_t next =
        Allowed(std::min(most, std::clamp(wanted, workers + 1, std::max(2 * workers, int64_t{2}))));
    if (next <= workers || !probe(next, "the training still waits for data")) break;
    if (rates[next] < rates[workers] / Near()) break;
    workers = next;
  }
  // Downwards to the fewest that come near.
  while (room()) {
    const double enough = Near() * best_of()->second;
    int64_t fewest = best_of()->first;
    for (const auto& [count, rate] : rates) {
      if (rate >= enough) fewest = std::min(fewest, count);
    }
    int64_t next = fewest - 1;
    if (given) {
      const auto at = std::lower_bound(given->begin(), given->end(), fewest);
      next = at == given->begin() ? -1 : *std::prev(at);
    }
    if (next < 0 || rates.contains(next)) break;
    probe(next, "one fewer");
    workers = fewest;
  }
  const double enough = Near() * best_of()->second;
  for (const auto& [count, rate] : rates) {
    if (rate < enough) continue;
    if (const Trial* trial = Find(Normal(With("num_workers", count))))
      best_ = static_cast<size_t>(trial - trials_.data());
    break;
  }
}

// ---- threads, and the loader's lesser knobs ----

int64_t Searcher::WorkersNow() const {
  const auto at = Best().settings.find("num_workers");
  return at != Best().settings.end() ? at->second.get<int64_t>() : known_.workers.value_or(0);
}

void Searcher::Threads() {
  if (!MayTurn("intraop_threads") || question_.values.contains("intraop_threads")) return;
  if (known_.device || known_.threads <= 1)
    return Skip("intraop_threads",
                known_.device ? "the model is on a device" : "the training computes with one thread");
  const int64_t workers = WorkersNow();
  const int64_t fewer = std::max<int64_t>(1, known_.cores - workers);
  if (fewer >= known_.threads || workers == 0) return Skip("intraop_threads", "no worker wants their cores");
  const auto predicted = Predicted(workers, fewer), now = Predicted(workers, known_.threads);
  if (predicted && now && *predicted < kWorthTrying * *now)
    return Skip("intraop_threads", "the replay says that fewer gain nothing");
  Adopt(Try(With("intraop_threads", fewer), "cores for the workers", predicted));
}

void Searcher::OwnValues() {
  for (const auto& [name, values] : question_.values) {
    if (name == "num_workers" || name == "batch_size") continue;  // which have a search of their own
    for (const json& value : values) {
      if (laboratory_.IsOver()) return;
      Adopt(Try(With(name, value), "a value that you gave"));
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

// The script as it was and the chosen setting again, in turns: what changed on the machine meanwhile is in both.
void Searcher::Finalists() {
  const Answer so_far = Conclude(question_, known_, trials_);
  if (!so_far.recommended || !so_far.baseline || so_far.recommended->settings == so_far.baseline->settings)
    return;
  for (int round = 0; round < 2; ++round) {
    for (const Trial* finalist : {&*so_far.baseline, &*so_far.recommended}) {
      if (laboratory_.IsOver()) return;
      Trial trial = laboratory_.Try({finalist->settings, "the proof: before and after in turns", true,
                                     finalist->predicted, std::nullopt});
      if (laboratory_.IsOver() && !trial.ok()) return;
      trial.predicted = finalist->predicted;
      trials_.push_back(std::move(trial));
    }
  }
}

Answer Searcher::Run() {
  const Trial* baseline = Try(question_.baseline, "the script as it is");
  if (baseline != nullptr && baseline->ok()) {
    known_ = laboratory_.Learn(*baseline);
    for (const auto& [name, own] :
         {std::pair{"num_workers", &known_.workers}, {"batch_size", &known_.batch}}) {
      const auto at = question_.baseline.find(name);
      if (at != question_.baseline.end() && at->second.is_number_integer()) *own = at->second.get<int64_t>();
    }
    if (question_.exhaustive) {
      Grid();
    } else {
      Switches();
      Batch();
      if (known_.device)
        TrySwitch("compile", true, "fewer and larger kernels");
      else
        Skip("compile", "the model is on no device: --set compile=true tries it all the same");
      if (known_.fast_data) TrySwitch("fast_data", true, "measured to load the same batches in less time");
      Workers();
      loader_is_chosen_ = true;
      // A batch that takes what this loader delivers will do.
      if (WorkersNow() == 0 || Best().busy.value_or(1) < 1 - kStarved) Batch();
      if (known_.epochs && WorkersNow() > 0)
        TrySwitch("persistent_workers", true, "workers start anew at each epoch");
      if (known_.device) TrySwitch("pin_memory", true, "copies to the device at the speed of its link");
      Threads();
      OwnValues();
    }
    Finalists();
  }
  Answer answer = Conclude(question_, known_, std::move(trials_));
  answer.not_tried = std::move(not_tried_);
  return answer;
}

}  // namespace

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
