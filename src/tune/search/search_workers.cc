#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>

#include "base/text.h"
#include "tune/search/searcher.h"

namespace fullbore::tune {

namespace {

constexpr double kWaitsLittle = 0.02;  // of the step: more workers cannot gain what is worth trying
constexpr int kMostWorkers = 5;        // trials
// Times as fast by the replay: not worth a trial, as far as replays are off. A choice.
constexpr double kMuchLess = 0.9;
// A training that computes at less than this part of its speed beside workers waits for cores. A choice.
constexpr double kHeldUp = 0.8;

bool IsMuchLess(std::optional<double> predicted, std::optional<double> now) {
  return predicted && now && *predicted < kMuchLess * *now;
}

}  // namespace

// The number itself, or, where the user gave some, the smallest of those that is not less, or else the largest.
int64_t Searcher::Allowed(int64_t workers) const {
  const auto given = Given("num_workers");
  if (!given || given->empty()) return std::max<int64_t>(0, workers);
  for (const int64_t value : *given) {
    if (value >= workers) return value;
  }
  return given->back();
}

// So many that each worker has a core of its own; nothing where that is not fewer than now, or not to be turned.
std::optional<int64_t> Searcher::FewerThreads(int64_t workers) {
  const bool may_turn = question_.knobs.contains("intraop_threads") && !refused_.contains("intraop_threads");
  if (!may_turn || known_.device || workers == 0) return std::nullopt;
  int64_t fewer = std::max<int64_t>(1, known_.cores - workers);
  if (const auto given = Given("intraop_threads")) {
    const auto above = std::upper_bound(given->begin(), given->end(), fewer);
    if (above == given->begin()) return std::nullopt;
    fewer = *std::prev(above);
  }
  return fewer < Seen().threads ? std::optional(fewer) : std::nullopt;
}

// What the training should compute with beside so many workers, by what was measured, or else by the replay.
int64_t Searcher::ThreadsBeside(int64_t workers) {
  const auto fewer = FewerThreads(workers);
  if (!fewer) return Seen().threads;
  if (threads_give_way_) return *threads_give_way_ ? *fewer : Seen().threads;
  const auto predicted = Predicted(workers, *fewer), now = Predicted(workers, Seen().threads);
  return predicted && now && *predicted > kWorthTrying * *now ? *fewer : Seen().threads;
}

// The fewest that deliver what the training can take; by the replay where it can say, which knows of the cores, too.
int64_t Searcher::FirstGuess(int64_t most) {
  double best = 0;
  for (int64_t workers = 0; workers <= most; ++workers)
    best = std::max(best, PredictedWith(workers).value_or(0));
  for (int64_t workers = 0; workers <= most && best > 0; ++workers) {
    if (PredictedWith(workers).value_or(0) >= 0.97 * best) return workers;
  }
  const double fetch_s = Seen().fetch_s, fetch_cpu_s = Seen().fetch_cpu_s;
  if (fetch_s <= 0) return known_.cores;
  double wanted = Near() * TrainingRate(Best()) / static_cast<double>(known_.ranks) * fetch_s;
  if (fetch_cpu_s > 0) wanted = std::min(wanted, static_cast<double>(known_.cores) * fetch_s / fetch_cpu_s);
  return std::min(most, std::max<int64_t>(1, std::llround(std::ceil(wanted))));
}

std::optional<size_t> Searcher::TryWorkers(int64_t workers, int64_t threads, const std::string& why) {
  Settings settings = With("num_workers", workers);
  if (threads != Seen().threads) settings["intraop_threads"] = threads;
  const Trial* trial = Try(std::move(settings), why, Predicted(workers, threads));
  if (trial == nullptr || !IsFit(*trial)) return std::nullopt;
  return trial - trials_.data();
}

// With as many threads as it should compute with, and where that disappoints, with as many as it does or with fewer;
// once that was measured, with the better of them.
std::optional<size_t> Searcher::BestWith(int64_t workers, const std::string& why) {
  const int64_t all = Seen().threads, threads = ThreadsBeside(workers);
  const auto first = TryWorkers(workers, threads, why);
  const auto fewer = FewerThreads(workers);
  if (!fewer || !first || threads_give_way_) return first;
  const bool are_held_up = threads == all && TrainingRate(trials_[*first]) < kHeldUp * TrainingRate(Best());
  const bool gain_nothing = threads != all && trials_[*first].rate->mean < kWorthTrying * BestRate();
  if (!are_held_up && !gain_nothing) return first;
  const auto second = TryWorkers(
      workers, are_held_up ? *fewer : all,
      are_held_up ? "its threads wait for the cores that workers take" : "fewer threads gained nothing");
  if (!second) return first;
  const bool is_better = trials_[*second].rate->mean > trials_[*first].rate->mean;
  threads_give_way_ = is_better == are_held_up;
  return is_better ? second : first;
}

// The numbers of workers tried so far, each with its best trial.
struct Searcher::WorkersTried {
  const std::vector<Trial>& trials;
  size_t begin;                                     // of the trials, when the search for workers began
  std::map<int64_t, std::optional<size_t>> best{};  // by number; nothing where it could not be measured

  bool Has(int64_t workers) const { return best.contains(workers); }
  double Rate(int64_t workers) const {
    const auto at = best.find(workers);
    return at != best.end() && at->second ? trials[*at->second].rate->mean : 0;
  }
  void Note(int64_t workers, std::optional<size_t> trial) {
    if (!Has(workers) || (trial && trials[*trial].rate->mean > Rate(workers))) best[workers] = trial;
  }
  int64_t Fastest() const {
    return std::max_element(best.begin(), best.end(),
                            [&](const auto& a, const auto& b) { return Rate(a.first) < Rate(b.first); })
        ->first;
  }
  // The fewest whose rate is at least that part of the fastest one's.
  int64_t FewestNear(double near) const {
    const double enough = near * Rate(Fastest());
    return std::find_if(best.begin(), best.end(),
                        [&](const auto& each) { return Rate(each.first) >= enough; })
        ->first;
  }
};

bool Searcher::MayTryMore(const WorkersTried& tried) const {
  return trials_.size() - tried.begin < kMostWorkers && !IsOver();
}

// The workers that there are may be too many for the training's threads already, and no replay may tell.
void Searcher::GiveCoresToWorkers(int64_t workers, WorkersTried& tried) {
  const auto fewer = FewerThreads(workers);
  if (!fewer || Predicted(workers, *fewer) || workers + Seen().threads <= known_.cores) return;
  const auto with_fewer = TryWorkers(workers, *fewer, "cores for the workers it has");
  threads_give_way_ = with_fewer && trials_[*with_fewer].rate->mean > tried.Rate(workers);
  if (*threads_give_way_) tried.Note(workers, with_fewer);
}

// As many as the training takes, by what those of this trial delivered; at most twice as many.
int64_t Searcher::MoreWorkers(int64_t workers, const Trial& trial, int64_t most) const {
  const double each = trial.rate->mean / static_cast<double>(std::max<int64_t>(1, workers));
  const auto wanted = static_cast<int64_t>(std::ceil(Near() * TrainingRate(trial) / each));
  return Allowed(std::min(most, std::clamp(wanted, workers + 1, std::max(2 * workers, int64_t{2}))));
}

// While it pays: fetching may take longer beside others than it did alone.
void Searcher::RaiseWorkers(int64_t workers, int64_t most, WorkersTried& tried) {
  while (MayTryMore(tried) && tried.Fastest() == workers && workers < most) {
    const Trial& trial = trials_[*tried.best.at(workers)];  // until the next one
    if (1 - trial.busy.value_or(1) < kWaitsLittle) return;
    const int64_t next = MoreWorkers(workers, trial, most);
    // Where the replay was not too hopeful of these, it is believed that more bring nothing: there are no cores for
    // them.
    const auto here = PredictedWith(workers), there = PredictedWith(next);
    if (here && there && *there < kWorthTrying * *here && trial.rate->mean > kMuchLess * *here) return;
    if (next <= workers) return;
    const auto more = BestWith(next, "the training still waits for data");
    tried.Note(next, more);
    if (!more || tried.Rate(next) < tried.Rate(workers) / Near()) return;
    workers = next;
  }
}

// One by one, to the fewest that come near the fastest.
void Searcher::LowerWorkers(WorkersTried& tried) {
  const auto given = Given("num_workers");
  while (MayTryMore(tried)) {
    const int64_t now = tried.FewestNear(Near());
    int64_t next = now - 1;
    if (given) {
      const auto at = std::lower_bound(given->begin(), given->end(), now);
      next = at == given->begin() ? -1 : *std::prev(at);
    }
    if (next < 0 || tried.Has(next) || IsMuchLess(PredictedWith(next), PredictedWith(now))) return;
    tried.Note(next, BestWith(next, "one fewer"));
  }
}

void Searcher::Workers() {
  if (!MayTurn("num_workers")) return;
  const auto given = Given("num_workers");
  if (!known_.Own("num_workers") && !given) return Skip("num_workers", "no DataLoader was seen");
  if (Best().settings.contains("fast_data")) return Skip("num_workers", "fullbore.data loads the batches");
  const int64_t now = WorkersNow();
  const double wait = 1 - Best().busy.value_or(1 - known_.wait);
  if (wait < kWaitsLittle && now <= 1)
    return Skip("num_workers",
                fmt::format("the training waits for data only {} of the time", FormatPercent(wait)));
  const int64_t most = given && !given->empty() ? given->back() : std::max(now, kWorkersACore * known_.cores);
  WorkersTried tried{trials_, trials_.size(), {{now, best_}}};
  GiveCoresToWorkers(now, tried);
  const int64_t workers = Allowed(FirstGuess(most));
  tried.Note(workers, BestWith(workers, "the fewest that should keep up with the training"));
  if (now == 0 && known_.importing && trials_.back().outcome == Outcome::kCrashed)
    return Skip(
        "num_workers",
        "workers that are not forked import the script again and receive the dataset pickled: the code that "
        "trains has to be under if __name__ == \"__main__\":");
  RaiseWorkers(workers, most, tried);
  LowerWorkers(tried);
  if (trials_.size() == tried.begin)
    Skip("num_workers", fmt::format("according to the recording, no number other than {} is faster", now));
  best_ = tried.best.at(tried.FewestNear(Near())).value_or(best_);
}

int64_t Searcher::WorkersOf(const Settings& settings) const {
  const auto at = settings.find("num_workers");
  return at != settings.end() ? at->second.get<int64_t>() : known_.Own("num_workers").value_or(0);
}

void Searcher::Threads() {
  if (!MayTurn("intraop_threads") || question_.values.contains("intraop_threads")) return;
  if (known_.device || known_.threads <= 1)
    return Skip("intraop_threads",
                known_.device ? "the model is on a device" : "the training computes with one thread");
  const auto fewer = FewerThreads(WorkersNow());
  const bool was_tried = std::any_of(trials_.begin(), trials_.end(), [](const Trial& trial) {
    return trial.settings.contains("intraop_threads");
  });
  if (was_tried) return;
  if (!fewer) return Skip("intraop_threads", "no worker needs their cores");
  const auto predicted = Predicted(WorkersNow(), *fewer), now = Predicted(WorkersNow(), Seen().threads);
  if (predicted && now && *predicted < kWorthTrying * *now)
    return Skip("intraop_threads", "the replay predicts no gain from fewer");
  Adopt(Try(With("intraop_threads", *fewer), "cores for the workers", predicted));
}

}  // namespace fullbore::tune
