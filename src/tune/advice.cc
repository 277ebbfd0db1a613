#include "tune/advice.h"

#include <fmt/format.h>

#include "base/secrets.h"
#include "base/text.h"
#include "tune/knob.h"

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
  std::string text;
  for (const std::string& word : MaskSecrets(Substitute(command, settings).command))
    text += (text.empty() ? "" : " ") + ShellQuote(word);
  return text;
}

std::optional<EpochCost> CostOfAnEpoch(const Answer& answer, const AnswerContext& context) {
  const auto samples = context.known.epoch_samples;
  if (!context.price_per_hour || !samples || !answer.baseline || !answer.recommended) return std::nullopt;
  if (answer.baseline->unit != kSamplesPerSecond) return std::nullopt;
  const auto cost = [&](const Trial& trial) {
    return static_cast<double>(*samples) / trial.rate->mean / 3600 * *context.price_per_hour;
  };
  return EpochCost{*samples, cost(*answer.baseline), cost(*answer.recommended)};
}

std::string RateText(const Rate& rate) {
  return fmt::format("{} \u00b1{}", FormatCount(rate.mean), FormatCount((rate.high - rate.low) / 2));
}

}  // namespace fullbore::tune
