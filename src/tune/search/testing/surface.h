// Made trainings, whose best settings are known: what stands in for a machine where the search is tried.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <random>
#include <string>

#include "tune/search/search.h"

namespace fullbore::tune {

// A step takes a + b*B on the device, and W workers each need `fetch_s` for a sample. Beyond `batch_cliff`, memory ends.
struct Surface {
  double a = 0.010, b = 0.0001;
  double fetch_s = 0;  // 0: no loader
  int64_t workers = 0, batch = 32;
  int64_t batch_cliff = INT64_MAX;
  std::optional<int64_t> memory = std::nullopt;  // bytes in all
  int64_t sample_bytes = 1'000'000;
  int64_t hidden_bytes =
      0;  // the start held as much as that for a moment: what a batch takes less, no peak shows
  std::string refuses = "";  // a knob
  double noise = 0;          // of a trial's rate, as a ratio
  int64_t cores = 8;
  double fetch_cpu = 1;            // the part of `fetch_s` on a core; the rest waits for storage
  int64_t fast_until = INT64_MAX;  // a batch that fits into the caches; beyond, a sample takes twice as long
  bool replays = false;            // the recordings say what other numbers of workers and threads bring
  Outcome beyond_cliff = Outcome::kOutOfMemory;
  int64_t threads = 1;     // the training computes with
  double pool = 1;         // times as fast as with fewer
  double held_up = 1;      // times as long as it takes where workers want the cores of several threads
  bool importing = false;  // workers import the script, which is not made for it

  double TrainingRate(int64_t w, int64_t samples, int64_t t) const {
    const auto size = static_cast<double>(samples);
    const bool waits_for_cores = w > 0 && t > 1 && w + t > cores;
    return size / (a + (samples > fast_until ? 2 : 1) * b * size) / (waits_for_cores ? held_up : 1) /
           (t < threads ? pool : 1);
  }
  double RateOf(int64_t w, int64_t samples, int64_t t = 1) const {
    const double device = TrainingRate(w, samples, t);
    if (fetch_s <= 0) return device;
    if (w == 0) return 1 / (1 / device + fetch_s);
    const double used = std::min(static_cast<double>(w), static_cast<double>(cores) / fetch_cpu);
    return std::min(device, used / fetch_s);
  }
};

class SurfaceLaboratory : public Laboratory {
 public:
  explicit SurfaceLaboratory(const Surface& surface, uint32_t seed = 1) : surface_(surface), random_(seed) {}

  Trial Try(const Request& request) override {
    ++trials;
    Trial trial;
    trial.settings = request.settings;
    const int64_t workers = ValueOf(request.settings, "num_workers", surface_.workers),
                  batch = ValueOf(request.settings, "batch_size", surface_.batch),
                  threads = ValueOf(request.settings, "intraop_threads", surface_.threads);
    if (request.settings.contains(surface_.refuses)) {
      trial.outcome = Outcome::kRefused;
      trial.refused = surface_.refuses;
      return trial;
    }
    if (workers > 0 && surface_.importing) {
      trial.outcome = Outcome::kCrashed;
      return trial;
    }
    if (batch > surface_.batch_cliff) {
      trial.outcome = surface_.beyond_cliff;
      return trial;
    }
    const double true_rate = surface_.RateOf(workers, batch, threads);
    const double rate = true_rate * std::normal_distribution<double>(1, surface_.noise + 1e-9)(random_);
    const double half = std::max(0.001, 2 * surface_.noise) * rate;  // 95 %
    trial.rate = Rate{rate, rate - half, rate + half};
    trial.busy = std::min(1.0, true_rate / surface_.TrainingRate(workers, batch, threads) *
                                   std::normal_distribution<double>(1, surface_.noise + 1e-9)(random_));
    trial.cut_short = request.hopeless_below && trial.rate->high < *request.hopeless_below;
    trial.peak_memory_bytes = 1'000'000'000 + workers * 200'000'000 +
                              std::max(batch * surface_.sample_bytes, surface_.hidden_bytes);
    if (surface_.memory)
      trial.memory_filled =
          static_cast<double>(*trial.peak_memory_bytes) / static_cast<double>(*surface_.memory);
    return trial;
  }
  std::optional<Known> Learn(const Trial& trial) override {
    Known known;
    known.own["batch_size"] = surface_.batch;
    if (surface_.fetch_s > 0) known.own["num_workers"] = surface_.workers;
    known.wait = 1 - trial.busy.value_or(1);
    // What one worker was seen to need, is known less well than the rate.
    known.fetch_s =
        surface_.fetch_s * std::normal_distribution<double>(1, 3 * surface_.noise + 1e-9)(random_);
    known.fetch_cpu_s = surface_.fetch_cpu * known.fetch_s;
    known.cores = surface_.cores;
    known.importing = surface_.importing;
    known.memory_limit = surface_.memory;
    known.own["intraop_threads"] = surface_.threads;
    known.threads = ValueOf(trial.settings, "intraop_threads", surface_.threads);
    if (surface_.replays) {
      const int64_t workers = ValueOf(trial.settings, "num_workers", surface_.workers),
                    batch = ValueOf(trial.settings, "batch_size", surface_.batch);
      known.replay = [=, surface = surface_, own = known.threads](int64_t others, int64_t threads) {
        return surface.RateOf(others, batch, threads) / surface.RateOf(workers, batch, own);
      };
    }
    return known;
  }
  bool IsOver() const override { return trials >= most_trials; }

  int trials = 0, most_trials = 1000;

 private:
  static int64_t ValueOf(const Settings& settings, const char* name, int64_t otherwise) {
    const auto at = settings.find(name);
    return at == settings.end() ? otherwise : at->second.get<int64_t>();
  }

  Surface surface_;
  std::mt19937 random_;
};

}  // namespace fullbore::tune
