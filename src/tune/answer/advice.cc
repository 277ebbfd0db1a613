#include "tune/answer/advice.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/command_line.h"
#include "base/secrets.h"
#include "base/text.h"
#include "tune/knob/knob.h"

namespace fullbore::tune {

Advice AdviceOf(const Answer& answer, const AnswerContext& context) {
  const Trial& chosen = *answer.recommended;
  Advice advice;
  const Settings in_script = Substitute(context.command, chosen.settings).for_hook;
  if (in_script.size() < chosen.settings.size())
    advice.command = CommandText(context.command, chosen.settings);
  for (const auto& [name, value] : in_script) {
    const Knob* knob = KnobNamed(name);
    if (knob == nullptr) continue;
    advice.lines.push_back(
        {knob->in_code(value), IsOfLoader(*knob, value) ? context.known.loader_where : std::string()});
  }
  advice.changes = ChangesOfResults(answer);
  advice.without_edit =
      fmt::format("fullbore tune --apply {} -- {}", chosen.run, CommandText(context.command, {}));
  return advice;
}

namespace {

// What the search saw of it, against those settings.
std::string Seen(const Answer& answer, const Settings& against, const Settings& settings) {
  const auto first = [&](const Settings& wanted) {
    return std::find_if(answer.trials.begin(), answer.trials.end(), [&](const Trial& trial) {
      return trial.ok() && !trial.proves && !trial.cut_short && trial.settings == wanted;
    });
  };
  const auto before = first(against), after = first(settings);
  if (before == answer.trials.end() || after == answer.trials.end() || before->unit != after->unit) return "";
  return fmt::format("{:.2f}x", after->rate->mean / before->rate->mean);
}

// Of a proof that recommends nothing.
std::string Ground(const Answer& answer, const Proof& proof, const Settings& against) {
  const std::string setting = ToText(proof.settings), seen = Seen(answer, against, proof.settings);
  const auto gain = proof.gain();
  if (proof.verdict == Verdict::kFailed)
    return fmt::format("Refuted: {} failed, or filled the memory, during the proof.", setting);
  if (proof.verdict == Verdict::kNoGain) {
    return fmt::format("Refuted: {}, {} in {}{}.", setting, GainText(*gain), PairsText(proof),
                       seen.empty() ? "" : fmt::format("; in the search it looked like {}", seen));
  }
  if (!gain) {
    return fmt::format("Not proven: {}{}. At least two pairs of trials are needed: give a longer --budget.",
                       setting, seen.empty() ? "" : fmt::format(", {} when it was tried", seen));
  }
  return fmt::format("Not proven: {}, {} in {}. {}", setting, GainText(*gain), PairsText(proof),
                     proof.pairs.size() < kMostPairs
                         ? "More pairs would settle it: give a longer --budget."
                         : "The trials differ too much: tune it when nothing else runs on this machine.");
}

}  // namespace

std::vector<std::string> Grounds(const Answer& answer) {
  if (answer.trials.empty()) return {};
  const Settings& as_it_is = answer.trials.front().settings;
  std::vector<std::string> grounds;
  for (const Proof& proof : answer.proofs) {
    if (!proof.recommends()) {
      grounds.push_back(Ground(answer, proof, as_it_is));
      continue;
    }
    const bool faster = proof.verdict == Verdict::kFaster;
    grounds.push_back(
        fmt::format("Proven in {}, none of them part of the search{}.", PairsText(proof),
                    faster ? "" : ": it needs less, and is slower by no more than --within allows"));
  }
  const bool was_to_be_proven =
      answer.unproven && std::any_of(answer.proofs.begin(), answer.proofs.end(), [&](const Proof& proof) {
        return proof.settings == answer.unproven->settings;
      });
  if (answer.unproven && !was_to_be_proven)
    grounds.push_back(Ground(answer, {answer.unproven->settings, {}}, as_it_is));
  return grounds;
}

namespace {

int64_t BatchOf(const Answer& answer, const Trial& trial) {
  const auto at = trial.settings.find("batch_size");
  return at != trial.settings.end() && at->second.is_number_integer()
             ? at->second.get<int64_t>()
             : answer.known.Own("batch_size").value_or(0);
}

}  // namespace

std::vector<std::string> OfLargerBatches(const Answer& answer) {
  if (!answer.recommended) return {};
  if (answer.larger_batch) {
    const auto& [trial, proof] = *answer.larger_batch;
    if (proof.verdict != Verdict::kFaster)
      return {"A larger batch: " + Ground(answer, proof, answer.recommended->settings)};
    return {fmt::format("A larger batch would change training results: {} is {} as fast as the "
                        "recommendation, proven in {}.",
                        ToText(trial.settings), GainText(*proof.gain()), PairsText(proof)),
            fmt::format("It may change {}.", KnobNamed("batch_size")->changes)};
  }
  constexpr double kSeen = 1.005;  // less is not seen in two digits
  const int64_t size = BatchOf(answer, *answer.recommended);
  std::vector<std::string> tried;
  double most = 0;
  for (const Trial& trial : answer.trials) {
    if (!trial.apart || !trial.ok() || BatchOf(answer, trial) <= size) continue;
    tried.push_back(ToText(trial.settings));
    most = std::max(most, trial.rate->mean / answer.recommended->rate->mean);
  }
  if (tried.empty()) return {};
  return {fmt::format("A larger batch, which would change training results, is {}: {} {} tried.",
                      most >= kSeen ? fmt::format("at most {:.2f}x as fast", most) : "not faster",
                      fmt::join(tried, "; "), tried.size() == 1 ? "was" : "were")};
}

std::vector<std::string> ChangesOfResults(const Answer& answer) {
  const Settings before = answer.baseline ? answer.baseline->settings : Settings();
  std::vector<std::string> changes;
  for (const auto& [name, value] : answer.recommended->settings) {
    const Knob* knob = KnobNamed(name);
    const auto was = before.find(name);
    const bool is_new = was == before.end() || was->second != value;
    if (knob != nullptr && is_new && !knob->changes.empty())
      changes.push_back(fmt::format("{}: {}", name, knob->changes));
  }
  return changes;
}

std::string CommandText(const std::vector<std::string>& command, const Settings& settings) {
  return ShellLine(MaskSecrets(Substitute(command, settings).command));
}

std::optional<EpochCost> CostOfAnEpoch(const Answer& answer, const AnswerContext& context) {
  const auto samples = context.known.epoch_samples;
  if (!context.price_per_hour || !samples || !answer.baseline || !answer.recommended) return std::nullopt;
  if (answer.baseline->unit == kStepsPerSecond) return std::nullopt;
  const auto cost = [&](const Trial& trial) {
    const double counted = static_cast<double>(*samples) * context.known.useful_tokens.value_or(1);
    return counted / trial.rate->mean / 3600 * *context.price_per_hour;
  };
  return EpochCost{*samples, cost(*answer.baseline), cost(*answer.recommended)};
}

std::string RateText(const Rate& rate) {
  return fmt::format("{} \u00b1{}", FormatCount(rate.mean), FormatCount((rate.high - rate.low) / 2));
}

}  // namespace fullbore::tune
