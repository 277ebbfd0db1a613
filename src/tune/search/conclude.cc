#include <algorithm>
#include <cmath>
#include <iterator>
#include <tuple>

#include "tune/search/search.h"

namespace fullbore::tune {

namespace {

// The mean of several trials of the same settings, each with the weight of what is known of it.
Trial Together(const std::vector<const Trial*>& same) {
  Trial all = *same.front();
  double weights = 0, sum = 0;
  for (const Trial* trial : same) {
    const double half = std::max((trial->rate->high - trial->rate->low) / 2, 1e-3 * trial->rate->mean);
    weights += 1 / (half * half);
    sum += trial->rate->mean / (half * half);
    if (trial->peak_memory_bytes)
      all.peak_memory_bytes = std::max(all.peak_memory_bytes.value_or(0), *trial->peak_memory_bytes);
  }
  const double mean = sum / weights;
  // Where they differ by more than their intervals say, the machine changed between them: so does the interval.
  double half = std::sqrt(1 / weights);
  for (const Trial* trial : same) half = std::max(half, std::abs(trial->rate->mean - mean));
  if (same.size() > 1) all.rate = Rate{mean, mean - half, mean + half};
  return all;
}

bool Proves(const std::vector<Trial>& trials, const Settings& settings) {
  return std::any_of(trials.begin(), trials.end(), [&](const Trial& trial) {
    return trial.ok() && trial.proves && trial.settings == settings;
  });
}

// What was measured to prove a setting is the truth about it: the search chose it because it looked good.
std::vector<Trial> ByTheirSettings(const std::vector<Trial>& trials) {
  std::vector<Trial> result;
  std::vector<Settings> seen;
  for (const Trial& trial : trials) {
    if (!trial.ok() || trial.cut_short) continue;
    if (std::find(seen.begin(), seen.end(), trial.settings) != seen.end()) continue;
    seen.push_back(trial.settings);
    const bool proven = Proves(trials, trial.settings);
    std::vector<const Trial*> same;
    for (const Trial& other : trials) {
      const bool counts = other.ok() && !other.cut_short && other.proves >= proven;
      if (counts && other.settings == trial.settings) same.push_back(&other);
    }
    result.push_back(Together(same));
  }
  return result;
}

int64_t NumberOf(const Trial& trial, const std::string& name, const Known& known) {
  const auto at = trial.settings.find(name);
  return at != trial.settings.end() && at->second.is_number_integer() ? at->second.get<int64_t>()
                                                                      : known.Own(name).value_or(0);
}

// How far down the user's lists the values stand. Of a knob that we know nothing about, that order is all there is.
size_t PlacesInLists(const Question& question, const Trial& trial) {
  size_t places = 0;
  for (const auto& [name, values] : question.values) {
    const auto at = trial.settings.find(name);
    if (at == trial.settings.end() || name == "batch_size" || name == "num_workers") continue;
    places += static_cast<size_t>(std::find(values.begin(), values.end(), at->second) - values.begin());
  }
  return places;
}

// What a setting asks of the machine and of the person: the smaller the better, where throughput is alike.
std::tuple<int64_t, int64_t, size_t, size_t> Weight(const Question& question, const Known& known,
                                                    const Trial& trial) {
  return {NumberOf(trial, "batch_size", known), NumberOf(trial, "num_workers", known), trial.settings.size(),
          PlacesInLists(question, trial)};
}

// Whether one may be told to train with it for days: none of its trials died, nor filled the memory.
bool IsSafe(const std::vector<Trial>& trials, const Trial& mean) {
  if (mean.settings == trials.front().settings) return true;
  return std::none_of(trials.begin(), trials.end(), [&](const Trial& trial) {
    return trial.settings == mean.settings && (!trial.ok() || !LeavesHeadroom(trial, trials.front()));
  });
}

const Trial& Recommended(const Question& question, const Known& known, const std::vector<Trial>& all) {
  const Trial& fastest = *std::max_element(
      all.begin(), all.end(), [](const Trial& a, const Trial& b) { return a.rate->mean < b.rate->mean; });
  if (question.objective == Objective::kCost) return fastest;  // the machine costs the same whatever it does
  const double enough = NearBest(question, *fastest.rate) * fastest.rate->mean;
  const Trial* chosen = &fastest;
  for (const Trial& trial : all) {
    if (trial.rate->mean < enough) continue;
    const bool lighter = Weight(question, known, trial) < Weight(question, known, *chosen);
    const bool less_memory =
        trial.peak_memory_bytes.value_or(INT64_MAX) < chosen->peak_memory_bytes.value_or(INT64_MAX);
    if (question.objective == Objective::kMemory ? less_memory : lighter) chosen = &trial;
  }
  return *chosen;
}

std::vector<Trial> Front(std::vector<Trial> all) {
  std::sort(all.begin(), all.end(),
            [](const Trial& a, const Trial& b) { return a.rate->mean > b.rate->mean; });
  std::vector<Trial> front;
  for (Trial& trial : all) {
    if (!trial.peak_memory_bytes || trial.apart) continue;
    if (front.empty() || *trial.peak_memory_bytes < *front.back().peak_memory_bytes)
      front.push_back(std::move(trial));
  }
  return front;
}

}  // namespace

bool LeavesHeadroom(const Trial& trial, const Trial& baseline) {
  constexpr double kSame = 0.01;  // as the same trial twice
  return trial.memory_filled.value_or(0) <= std::max(kHeadroom, baseline.memory_filled.value_or(0) + kSame);
}

double NearBest(const Question& question, const Rate& best) {
  constexpr double kMostForNoise = 0.6;  // of what may be lost
  const double half_width = (best.high - best.low) / 2 / best.mean;
  return 1 - question.within + std::clamp(half_width, 0.0, kMostForNoise * question.within);
}

bool AsksForLess(const Question& question, const Known& known, const Trial& trial, const Trial& baseline) {
  if (question.objective == Objective::kCost) return false;
  if (question.objective == Objective::kMemory && trial.peak_memory_bytes && baseline.peak_memory_bytes)
    return *trial.peak_memory_bytes < *baseline.peak_memory_bytes;
  const auto asks = [&](const Trial& each) {
    return std::pair(NumberOf(each, "batch_size", known), NumberOf(each, "num_workers", known));
  };
  return asks(trial) < asks(baseline);
}

std::optional<Trial> FavouriteOf(const Question& question, const Known& known,
                                 const std::vector<Trial>& trials, const std::vector<Proof>& proofs) {
  const auto is_refuted = [&](const Trial& mean) {
    return std::any_of(proofs.begin(), proofs.end(), [&](const Proof& proof) {
      const bool refuted = proof.verdict == Verdict::kNoGain || proof.verdict == Verdict::kFailed;
      return refuted && proof.settings == mean.settings;
    });
  };
  std::vector<Trial> possible;
  for (Trial& mean : ByTheirSettings(trials)) {
    if (!mean.apart && IsSafe(trials, mean) && !is_refuted(mean)) possible.push_back(std::move(mean));
  }
  if (possible.empty()) return std::nullopt;
  return Recommended(question, known, possible);
}

Answer Conclude(const Question& question, const Known& known, std::vector<Trial> trials,
                std::vector<Proof> proofs) {
  Answer answer;
  answer.trials = std::move(trials);
  answer.proofs = std::move(proofs);
  answer.means = ByTheirSettings(answer.trials);
  if (answer.means.empty()) return answer;
  const auto with = [&](const Settings& settings) -> std::optional<Trial> {
    const auto at = std::find_if(answer.means.begin(), answer.means.end(),
                                 [&](const Trial& mean) { return mean.settings == settings; });
    return at == answer.means.end() ? std::nullopt : std::optional(*at);
  };
  answer.baseline = answer.recommended = with(answer.trials.front().settings);
  answer.pareto = Front(answer.means);
  if (!answer.baseline) return answer;
  if (!answer.proofs.empty() && answer.proofs.back().recommends()) {
    answer.recommended = with(answer.proofs.back().settings);
    answer.gain = *answer.proofs.back().gain();
  } else {
    answer.unproven = FavouriteOf(question, known, answer.trials, answer.proofs);
    if (answer.unproven && answer.unproven->settings == answer.baseline->settings) answer.unproven.reset();
  }
  return answer;
}

}  // namespace fullbore::tune
