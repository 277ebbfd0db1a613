#include "tune/trial/losses.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/text.h"
#include "tune/knob/knob.h"

namespace fullbore::tune {

namespace {

// A loss that has come near 0 is not divided by.
constexpr double kLeastScale = 0.01;  // of the largest
// Sums that threads make in another order.
constexpr double kRounding = 1e-4;
constexpr double kTimesItself = 3;

bool IsOf(Part part, const std::string& name) {
  const Knob* knob = KnobNamed(name);
  return knob != nullptr && knob->part == part;
}

Settings Only(Part part, Settings settings) {
  std::erase_if(settings, [part](const auto& setting) { return !IsOf(part, setting.first); });
  return settings;
}

Settings Without(Part part, Settings settings) {
  std::erase_if(settings, [part](const auto& setting) { return IsOf(part, setting.first); });
  return settings;
}

size_t StepsOfBoth(const Trial& a, const Trial& b) {
  return std::min(a.first_losses.size(), b.first_losses.size());
}

double Largest(const Trial& trial, const Trial& reference) {
  double scale = 0;
  for (const double loss : reference.first_losses) {
    if (std::isfinite(loss)) scale = std::max(scale, std::abs(loss));
  }
  double largest = 0;
  for (size_t i = 0; i < StepsOfBoth(trial, reference); ++i) {
    const double from = reference.first_losses[i], to = trial.first_losses[i];
    if (from != to && std::isfinite(from) && std::isfinite(to))
      largest = std::max(largest, std::abs(to - from) / std::max(std::abs(from), kLeastScale * scale));
  }
  return largest;
}

// The first step, from 1, at which a loss is not a number that is one in the reference.
std::optional<int64_t> Divergence(const Trial& trial, const Trial& reference) {
  for (size_t i = 0; i < StepsOfBoth(trial, reference); ++i) {
    if (std::isfinite(reference.first_losses[i]) && !std::isfinite(trial.first_losses[i]))
      return static_cast<int64_t>(i) + 1;
  }
  return std::nullopt;
}

// The most by which trials of the same settings differ.
std::optional<double> ByItself(const std::vector<Trial>& trials) {
  std::optional<double> most;
  for (size_t i = 0; i < trials.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (trials[i].settings != trials[j].settings || StepsOfBoth(trials[i], trials[j]) == 0) continue;
      most = std::max(most.value_or(0), Largest(trials[i], trials[j]));
    }
  }
  return most;
}

// A trial without the settings of arithmetic, but otherwise the same, or else with another way to load the same
// batches.
const Trial* ReferenceOf(const std::vector<Trial>& trials, const Trial& trial) {
  const Settings rest = Without(Part::kArithmetic, trial.settings);
  const Trial* found = nullptr;
  for (const Trial& other : trials) {
    if (StepsOfBoth(other, trial) == 0) continue;
    if (other.settings == rest) return &other;
    if (found == nullptr && Without(Part::kLoading, other.settings) == Without(Part::kLoading, rest))
      found = &other;
  }
  return found;
}

}  // namespace

bool LossDifference::IsNoise() const {
  return !diverges && by_itself && *by_itself > kRounding && largest < kTimesItself * *by_itself;
}

bool LossDifference::IsSame() const { return !diverges && largest <= kRounding; }

std::vector<LossDifference> CompareLosses(const std::vector<Trial>& trials) {
  const auto by_itself = ByItself(trials);
  std::vector<LossDifference> differences;
  for (const Trial& trial : trials) {
    const Settings changed = Only(Part::kArithmetic, trial.settings);
    const Trial* reference = changed.empty() ? nullptr : ReferenceOf(trials, trial);
    if (reference == nullptr) continue;
    LossDifference difference{ToText(changed), static_cast<int64_t>(StepsOfBoth(trial, *reference)),
                              Largest(trial, *reference), Divergence(trial, *reference), by_itself};
    const auto same = std::find_if(differences.begin(), differences.end(), [&](const LossDifference& each) {
      return each.setting == difference.setting;
    });
    if (same == differences.end())
      differences.push_back(std::move(difference));
    else if (difference.diverges || (!same->diverges && same->largest < difference.largest))
      *same = std::move(difference);
  }
  return differences;
}

std::optional<LossDifference> CompareLosses(const std::vector<Trial>& before, const std::vector<Trial>& after,
                                            const std::string& what) {
  const auto says = [](const Trial& trial) { return !trial.first_losses.empty(); };
  const auto reference = std::ranges::find_if(before, says), trial = std::ranges::find_if(after, says);
  if (reference == before.end() || trial == after.end()) return std::nullopt;
  auto by_itself = ByItself(before);
  if (const auto of_after = ByItself(after)) by_itself = std::max(by_itself.value_or(0), *of_after);
  return LossDifference{what, static_cast<int64_t>(StepsOfBoth(*trial, *reference)),
                        Largest(*trial, *reference), Divergence(*trial, *reference), by_itself};
}

nlohmann::ordered_json ToJson(const LossDifference& difference) {
  return {{"setting", difference.setting},
          {"steps", difference.steps},
          {"largest_difference", difference.largest},
          {"not_a_number_from_step", OrNull(difference.diverges)},
          {"by_itself", OrNull(difference.by_itself)},
          {"is_noise", difference.IsNoise()}};
}

std::string ToText(const LossDifference& difference) {
  if (difference.diverges) {
    return fmt::format("with {} the loss is not a number from step {} on: do not train with this setting",
                       difference.setting, *difference.diverges);
  }
  std::string text = difference.largest == 0
                         ? fmt::format("losses of the first {} steps with {}: the same", difference.steps,
                                       difference.setting)
                         : fmt::format("losses of the first {} steps with {} differ by at most {:.2g} %",
                                       difference.steps, difference.setting, 100 * difference.largest);
  if (difference.IsNoise()) {
    return text +
           fmt::format(
               ", which says nothing: the script is not deterministic, and two runs with the same settings "
               "differ by {:.2g} %",
               100 * *difference.by_itself);
  }
  if (!difference.by_itself && difference.largest > 0)
    text += " (no settings were tried twice, so how much the script itself varies is not known)";
  return text;
}

}  // namespace fullbore::tune
