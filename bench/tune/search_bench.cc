// The search on made trainings: how many trials it takes, and how far from the best it ends, beside what people do by
// hand: double the batch and the workers until nothing is gained, then bisect. Without arguments, 4,000 surfaces.
//
//   search_bench [COUNT]             the table
//   search_bench --surfaces [COUNT]  the surfaces as lines of JSON, with what the search chose: for optuna_peer.py
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "tune/search/testing/surface.h"

namespace {

using fullbore::FormatPercent;
namespace tune = fullbore::tune;
using tune::Surface;
using tune::SurfaceLaboratory;

constexpr int64_t kLargestProbe = 64;  // in first batches

Surface MadeSurface(std::mt19937& random) {
  const auto log_uniform = [&](double low, double high) {
    return std::exp(std::uniform_real_distribution<double>(std::log(low), std::log(high))(random));
  };
  const auto one_of = [&](std::vector<int64_t> values) {
    return values[std::uniform_int_distribution<size_t>(0, values.size() - 1)(random)];
  };
  Surface surface;
  surface.a = log_uniform(5e-4, 5e-2);
  surface.b = surface.a / log_uniform(4, 1024);  // where half of a step is for its samples
  surface.batch = one_of({8, 16, 32, 64});
  surface.cores = one_of({2, 4, 8, 16, 32});
  surface.workers = one_of({0, 0, 2, 4});
  surface.fetch_s = surface.b * log_uniform(0.2, 16);  // so many workers for the device's limit
  if (one_of({0, 1})) surface.batch_cliff = surface.batch << one_of({0, 1, 2, 3, 4, 5, 6, 7, 8});
  surface.noise = std::uniform_real_distribution<double>(0.005, 0.03)(random);
  return surface;
}

double BestOf(const Surface& surface) {
  double best = 0;
  for (int64_t batch = 1; batch <= std::min(surface.batch_cliff, surface.batch * kLargestProbe); batch *= 2) {
    for (int64_t workers = 0; workers <= std::max(surface.workers, 4 * surface.cores); ++workers)
      best = std::max(best, surface.RateOf(workers, batch));
  }
  return best;
}

struct Result {
  int trials = 0;
  int64_t workers = 0, batch = 0;
};

Result Ours(const Surface& surface, uint32_t seed) {
  SurfaceLaboratory laboratory(surface, seed);
  tune::Question question;
  question.knobs = {"num_workers", "batch_size"};
  const tune::Answer answer = tune::Search(question, laboratory);
  Result result{laboratory.trials, surface.workers, surface.batch};
  const tune::Settings& chosen = answer.recommended->settings;
  if (const auto at = chosen.find("num_workers"); at != chosen.end())
    result.workers = at->second.get<int64_t>();
  if (const auto at = chosen.find("batch_size"); at != chosen.end()) result.batch = at->second.get<int64_t>();
  return result;
}

// First the batch, then the workers: doubled while each doubling gains 5 %, then bisected between the last two.
Result ByHand(const Surface& surface, uint32_t seed) {
  SurfaceLaboratory laboratory(surface, seed);
  Result result{0, surface.workers, surface.batch};
  const auto rate = [&](int64_t workers, int64_t batch) {
    const tune::Trial trial =
        laboratory.Try({{{"num_workers", workers}, {"batch_size", batch}}, "", false, {}, {}});
    return trial.rate ? trial.rate->mean : 0.0;
  };
  const auto climb = [&](int64_t first, int64_t most, auto measure) {
    double best = measure(first);
    int64_t low = first, high = std::max<int64_t>(1, first * 2);
    for (; high <= most; high *= 2) {
      const double now = measure(high);
      if (now < 1.05 * best) break;
      best = now;
      low = high;
    }
    // Between `low`, which is good, and `high`, which gains nothing more or is not to be had.
    for (high = std::min(high, most + 1); high - low > std::max<int64_t>(1, low / 4);) {
      const int64_t middle = (low + high) / 2;
      const double now = measure(middle);
      if (now >= 1.02 * best) {
        best = now;
        low = middle;
      } else {
        high = middle;
      }
    }
    return low;
  };
  result.batch = climb(surface.batch, surface.batch * kLargestProbe,
                       [&](int64_t batch) { return rate(surface.workers, batch); });
  result.workers = climb(surface.workers, std::max(surface.workers, 4 * surface.cores),
                         [&](int64_t workers) { return rate(workers, result.batch); });
  result.trials = laboratory.trials;
  return result;
}

double Quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[static_cast<size_t>(q * static_cast<double>(values.size() - 1))];
}

// How many of ten searches, each with noise of its own, end with the settings that most of them end with.
int TimesTheSame(const Surface& surface, uint32_t seed) {
  std::map<std::pair<int64_t, int64_t>, int> times;
  for (uint32_t again = 0; again < 10; ++again) {
    const Result result = Ours(surface, 10 * seed + again);
    ++times[{result.workers, result.batch}];
  }
  return std::max_element(times.begin(), times.end(),
                          [](const auto& a, const auto& b) { return a.second < b.second; })
      ->second;
}

class Tally {
 public:
  void Add(const Surface& surface, const Result& result) {
    trials_.push_back(result.trials);
    regrets_.push_back(std::max(0.0, 1 - surface.RateOf(result.workers, result.batch) / BestOf(surface)));
  }
  void Print(const char* who) const {
    const auto near =
        std::count_if(regrets_.begin(), regrets_.end(), [](double regret) { return regret <= 0.05; });
    fmt::print("{:<24} {:>6.0f} {:>6.0f} {:>12} {:>8} {:>14}\n", who, Quantile(trials_, 0.5),
               Quantile(trials_, 0.95), FormatPercent(Quantile(regrets_, 0.5)),
               FormatPercent(Quantile(regrets_, 0.95)),
               FormatPercent(static_cast<double>(near) / static_cast<double>(regrets_.size())));
  }

 private:
  std::vector<double> trials_, regrets_;
};

}  // namespace

int main(int argc, char** argv) {
  const bool list = argc > 1 && std::string(argv[1]) == "--surfaces";
  const char* last = argc > (list ? 2 : 1) ? argv[argc - 1] : "4000";
  const auto count = fullbore::ParseInt(last).value_or(4000);
  std::mt19937 random(20261123);
  Tally ours, by_hand;
  int64_t repeated = 0, repeatable = 0;
  for (int64_t i = 0; i < count; ++i) {
    const Surface surface = MadeSurface(random);
    const auto seed = static_cast<uint32_t>(i);
    const Result result = Ours(surface, seed);
    if (list) {
      fmt::print(
          R"({{"a":{},"b":{},"fetch_s":{},"workers":{},"batch":{},"cliff":{},"cores":{},"noise":{},"best":{},"trials":{},"rate":{}}})"
          "\n",
          surface.a, surface.b, surface.fetch_s, surface.workers, surface.batch,
          std::min(surface.batch_cliff, surface.batch * kLargestProbe), surface.cores, surface.noise,
          BestOf(surface), result.trials, surface.RateOf(result.workers, result.batch));
      continue;
    }
    ours.Add(surface, result);
    by_hand.Add(surface, ByHand(surface, seed));
    if (i % 10 != 0) continue;
    ++repeated;
    if (TimesTheSame(surface, seed) >= 9) ++repeatable;
  }
  if (list) return 0;
  fmt::print("{} surfaces: workers and batch together\n\n{:<24} {:>6} {:>6} {:>12} {:>8} {:>14}\n", count, "",
             "trials", "95 %", "from the best", "95 %", "within 5 %");
  ours.Print("fullbore tune");
  by_hand.Print("doubling and bisection");
  fmt::print("\nthe same settings nine times of ten: {} of {} surfaces\n",
             FormatPercent(static_cast<double>(repeatable) / static_cast<double>(repeated)), repeated);
  return 0;
}
