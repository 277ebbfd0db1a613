#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>

#include "tune/search/knee.h"
#include "tune/search/searcher.h"

namespace fullbore::tune {

namespace {

constexpr int64_t kBatchProbe = 4;     // the second probe of the batch, in first ones
constexpr int64_t kLargestProbe = 64;  // the largest batch that is thought of, in first ones
constexpr int kMostBatches = 6;        // trials
constexpr double kOffTheLine = 0.1;    // of a rate: more than noise. A choice
// By how much two peaks may differ for other reasons than the batch: what a start held, blocks of an allocator. On the
// script of tests/tune/test_tune_memory.py 9 MB were seen.
constexpr double kMemoryUnsure = 16 << 20;

template <typename RateOf>
std::optional<StepLine> LineOf(const std::vector<BatchTrial>& measured, RateOf rate_of) {
  std::vector<BatchPoint> points;
  for (const BatchTrial& each : measured) points.push_back({static_cast<double>(each.batch), rate_of(each)});
  return FitLine(points);
}

// What they are worth by their line, which knows each of them better than it was measured; as they were measured where
// they do not lie on one.
std::vector<double> Smoothed(const std::vector<BatchTrial>& measured) {
  const auto line = LineOf(measured, [](const BatchTrial& each) { return each.rate; });
  std::vector<double> rates, by_line;
  for (const BatchTrial& each : measured) {
    rates.push_back(each.rate);
    if (line) by_line.push_back(line->RateAt(static_cast<double>(each.batch)));
  }
  const bool is_line =
      line && std::equal(rates.begin(), rates.end(), by_line.begin(),
                         [](double a, double b) { return std::abs(a - b) < kOffTheLine * a; });
  return is_line ? by_line : rates;
}

}  // namespace

// The largest size, of those between which the batch doubles, that memory is sure to hold and that could be measured.
int64_t Searcher::LargestSafe(int64_t first) const {
  int64_t largest = std::max(first, Sizes(first).back());
  std::map<int64_t, const Trial*> measured;
  for (const Trial& trial : trials_) {
    const auto at = trial.settings.find("batch_size");
    const int64_t batch = at == trial.settings.end() ? first : at->second.get<int64_t>();
    const bool failed = !trial.ok() && trial.outcome != Outcome::kRefused;
    if ((failed || !LeavesHeadroom(trial, trials_.front())) && batch > first)
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
  // Peaks that do not differ say that a sample takes little, not that it takes nothing.
  const double a_sample = (std::max(more, 0.0) + kMemoryUnsure) / static_cast<double>(at_big - at_small);
  const double filled = big->memory_filled.value_or(static_cast<double>(*big->peak_memory_bytes) / limit);
  const double most = static_cast<double>(at_big) + std::max(0.0, kHeadroom - filled) * limit / a_sample;
  while (largest > first && static_cast<double>(largest) > most) largest /= 2;
  return std::max(largest, first);
}

// What a batch of that size is worth: how fast the training could take it, whatever the loader does, as long as that is
// still to be tuned.
double Searcher::RateOfBatch(const Trial& trial) const {
  return LoaderIsFixed() ? trial.rate->mean : TrainingRate(trial);
}

// The samples/s that no number of workers brings more of; a larger batch than takes these gains nothing.
double Searcher::LoaderAtMost() {
  constexpr double kNoLimit = 1e300;
  const Known& seen = Seen();
  if (LoaderIsFixed() || seen.fetch_s <= 0) return kNoLimit;  // or it is in what was measured
  const auto cores = static_cast<double>(known_.cores * known_.ranks);
  const double fetch_cpu_s = seen.fetch_cpu_s > 0 ? seen.fetch_cpu_s : seen.fetch_s;
  return std::min(static_cast<double>(kWorkersACore) * cores / seen.fetch_s, cores / fetch_cpu_s);
}

// The sizes that may be tried, ascending: the user's, or those between which the batch doubles.
std::vector<int64_t> Searcher::Sizes(int64_t first) const {
  if (const auto given = Given("batch_size")) return *given;
  std::vector<int64_t> sizes = {first};
  while (sizes.front() > 1 && sizes.front() % 2 == 0) sizes.insert(sizes.begin(), sizes.front() / 2);
  while (sizes.back() < first * kLargestProbe) sizes.push_back(sizes.back() * 2);
  return sizes;
}

// All that was measured so far of the batch, with the other settings as they are now.
std::vector<BatchTrial> Searcher::MeasuredBatches(int64_t first) const {
  const auto others = [](Settings settings) {
    settings.erase("batch_size");
    return settings;
  };
  std::vector<BatchTrial> measured;
  for (const Trial& trial : trials_) {
    if (!IsFit(trial) || others(trial.settings) != others(Best().settings)) continue;
    const auto at = trial.settings.find("batch_size");
    const int64_t batch = at == trial.settings.end() ? first : at->second.get<int64_t>();
    measured.push_back({batch, RateOfBatch(trial), &trial});
  }
  std::sort(measured.begin(), measured.end(),
            [](const BatchTrial& a, const BatchTrial& b) { return a.batch < b.batch; });
  return measured;
}

// The knee, as far as it is known by now, rounded up to a size.
std::optional<int64_t> Searcher::KneeOf(const std::vector<BatchTrial>& measured,
                                        const std::vector<int64_t>& sizes) {
  const auto line = LineOf(measured, [](const BatchTrial& each) { return each.rate; });
  if (!line) return std::nullopt;
  double best = line->RateAt(static_cast<double>(sizes.back()));
  for (const BatchTrial& each : measured) best = std::max(best, each.rate);
  best = std::min(best, LoaderAtMost());
  // A line through two noisy points may say that a step costs nothing by itself: it is not believed far from them.
  const double lowest = static_cast<double>(measured.front().batch) / kBatchProbe;
  const double knee = std::max(lowest, Knee(*line, best, Near()).value_or(static_cast<double>(sizes.back())));
  const auto at = std::find_if(sizes.begin(), sizes.end(),
                               [&](int64_t size) { return static_cast<double>(size) >= knee * 0.99; });
  return at == sizes.end() ? sizes.back() : *at;
}

// Four times as large, or what comes nearest to that; where nothing is larger, smaller.
int64_t Searcher::SecondBatch(int64_t first, const std::vector<int64_t>& sizes) {
  int64_t second = first;
  for (const int64_t size : sizes) {
    if (size > first && (second == first || size <= kBatchProbe * first)) second = size;
  }
  if (second != first) return second;
  for (const int64_t size : sizes) {
    if (size < first && (second == first || size * kBatchProbe <= first)) second = size;
  }
  return second;
}

// What the trial itself should measure: neither more than the training takes nor than it did get, with this loader.
std::optional<double> Searcher::PredictedAt(int64_t batch, const std::vector<BatchTrial>& measured) {
  const auto training = LineOf(measured, [](const BatchTrial& each) { return each.rate; });
  const auto both = LineOf(measured, [](const BatchTrial& each) { return each.trial->rate->mean; });
  if (!training || !both) return std::nullopt;
  return std::min(training->RateAt(static_cast<double>(batch)), both->RateAt(static_cast<double>(batch)));
}

void Searcher::Batch() {
  if (!MayTurn("batch_size")) return;
  const auto given = Given("batch_size");
  const auto own = known_.Own("batch_size");
  if (!own && (!given || given->empty())) return Skip("batch_size", "no loader with a batch size was seen");
  const int64_t first = own ? *own : given->front();
  const auto now = Best().settings.find("batch_size");
  const int64_t begin = now == Best().settings.end() ? first : now->second.get<int64_t>();
  int tried = 0;
  const auto probe = [&](int64_t size, const std::string& why) {
    ++tried;
    const Trial* trial = Try(With("batch_size", size), why, PredictedAt(size, MeasuredBatches(first)));
    return trial != nullptr && IsFit(*trial);
  };
  const auto has = [&](int64_t size) {
    const auto measured = MeasuredBatches(first);
    return std::any_of(measured.begin(), measured.end(),
                       [&](const BatchTrial& each) { return each.batch == size; });
  };
  // Those that memory allows, which each trial says better.
  const auto allowed = [&] {
    std::vector<int64_t> sizes = Sizes(first);
    const int64_t largest = LargestSafe(first);
    sizes.erase(std::remove_if(sizes.begin(), sizes.end(), [&](int64_t size) { return size > largest; }),
                sizes.end());
    return sizes;
  };
  while (MeasuredBatches(first).size() < 2 && tried < kMostBatches && MayTurn("batch_size")) {
    const int64_t second = SecondBatch(begin, allowed());
    if (second == begin || probe(second, "the fixed cost of a step")) break;
    if (second < begin) return;  // not even a smaller one
  }
  std::set<int64_t> done;
  while (tried < kMostBatches && MayTurn("batch_size")) {
    const std::vector<int64_t> sizes = allowed();
    if (sizes.empty()) break;
    const auto knee = KneeOf(MeasuredBatches(first), sizes);
    if (!knee || !done.insert(*knee).second) break;
    if (!has(*knee) && !probe(*knee, "the knee: from here on a larger batch gains little")) continue;
    const auto at = std::find(sizes.begin(), sizes.end(), *knee);
    if (at == sizes.begin() || has(*std::prev(at)) || tried >= kMostBatches) continue;
    probe(*std::prev(at), "one size below the knee");
  }
  // The smallest that comes near the best of them, or takes all that a loader can deliver.
  const std::vector<BatchTrial> measured = MeasuredBatches(first);
  if (measured.empty()) return;
  const std::vector<double> rates = Smoothed(measured);
  const double enough = Near() * std::min(*std::max_element(rates.begin(), rates.end()), LoaderAtMost());
  for (size_t i = 0; i < measured.size(); ++i) {
    const BatchTrial& each = measured[i];
    // What was ended early is not known well enough, unless it is the loader that made it slow, which is next.
    if (rates[i] < enough || (each.trial->cut_short && LoaderIsFixed())) continue;
    best_ = static_cast<size_t>(each.trial - trials_.data());
    break;
  }
}

}  // namespace fullbore::tune
