#include "tune/answer/page/page.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/page_file.h"
#include "report/page_sources.h"
#include "tune/answer/page/curve.h"
#include "tune/answer/page/page_sources.h"
#include "tune/trial/losses.h"

namespace fullbore::tune {

namespace {

using Json = nlohmann::ordered_json;

bool Has(const std::vector<Trial>& trials, const Settings& settings) {
  return std::any_of(trials.begin(), trials.end(),
                     [&](const Trial& each) { return each.settings == settings; });
}

bool Is(const std::optional<Trial>& trial, const Settings& settings) {
  return trial && trial->settings == settings;
}

// Each setting once: its mean, or what is known of one that was ended as hopeless or could not be measured.
std::vector<Trial> EachSetting(const Answer& answer) {
  std::vector<Trial> settings = answer.means;
  for (const Trial& trial : answer.trials) {
    if (!Has(settings, trial.settings)) settings.push_back(trial);
  }
  return settings;
}

// A trial, and what the answer makes of its setting.
Json TrialData(const Trial& trial, const Answer& answer) {
  Json data = ToJson(trial);
  data["setting"] = ToText(trial.settings);
  data["baseline"] = Is(answer.baseline, trial.settings);
  data["recommended"] = Is(answer.recommended, trial.settings);
  data["front"] = Has(answer.pareto, trial.settings);
  return data;
}

Json CurveData(const Curve& curve) {
  Json lines = Json::array();
  for (const Curve::Line& line : curve.lines) {
    Json points = Json::array();
    for (const Curve::Point& point : line.points) points.push_back({point.x, point.trial});
    lines.push_back({{"others", line.others}, {"points", points}});
  }
  return {{"name", curve.name}, {"doubling", curve.doubling}, {"lines", lines}};
}

Json AdviceData(const Answer& answer, const AnswerContext& context) {
  const Advice advice = AdviceOf(answer, context);
  Json lines = Json::array();
  for (const Advice::Line& line : advice.lines) lines.push_back({{"code", line.code}, {"where", line.where}});
  Json data = {{"command", advice.command},
               {"lines", lines},
               {"changes", advice.changes},
               {"without_edit", advice.without_edit},
               {"patch", context.patch}};
  if (answer.baseline) {
    data["gain"] = {{"expected", answer.gain.expected}, {"low", answer.gain.low}, {"high", answer.gain.high}};
    data["compare"] = fmt::format("fullbore compare {} {}", answer.baseline->run, answer.recommended->run);
  }
  return data;
}

std::string TitleOf(const Answer& answer) {
  return "tune: " + (answer.recommended ? ToText(answer.recommended->settings) : "nothing could be measured");
}

// For browsers without scripts.
std::string TextOf(const Answer& answer, const AnswerContext& context) {
  std::string text = answer.recommended ? "Recommended: " + ToText(answer.recommended->settings) + "\n\n"
                                        : "Nothing could be measured: " + context.reason + "\n\n";
  for (const Trial& trial : answer.trials) {
    const std::string came =
        trial.rate ? RateText(*trial.rate) + " " + trial.unit : std::string(Name(trial.outcome));
    text += fmt::format("{}: {}\n", ToText(trial.settings), came);
  }
  return text;
}

}  // namespace

Json PageData(const Answer& answer, const AnswerContext& context) {
  const std::vector<Trial> settings = EachSetting(answer);
  Json data = {{"command", CommandText(context.command, {})},
               {"unit", answer.trials.empty() ? "samples/s" : answer.trials.front().unit},
               {"trials", Json::array()},
               {"settings", Json::array()},
               {"not_tried", answer.not_tried},
               {"losses", Json::array()},
               {"held", context.held},
               {"grounds", Grounds(answer)},
               {"larger_batch", OfLargerBatches(answer)},
               {"unlike_the_run", context.unlike_the_run},
               {"resume", context.resume},
               {"reason", context.reason}};
  for (const Trial& trial : answer.trials) data["trials"].push_back(TrialData(trial, answer));
  for (const Trial& trial : settings) data["settings"].push_back(TrialData(trial, answer));
  for (const LossDifference& each : CompareLosses(answer.trials)) data["losses"].push_back(ToText(each));
  if (const auto curve = CurveOf(settings, context.known)) data["curve"] = CurveData(*curve);
  if (answer.recommended) data["advice"] = AdviceData(answer, context);
  if (const auto cost = CostOfAnEpoch(answer, context))
    data["epoch"] = {{"samples", cost->samples}, {"before", cost->before}, {"after", cost->after}};
  return data;
}

std::string ToHtml(const Answer& answer, const AnswerContext& context) {
  return report::PageFile({TitleOf(answer), TextOf(answer, context), PageData(answer, context),
                           std::string(report::kPageCss) + std::string(kTuneCss), std::string(kTuneJs)});
}

}  // namespace fullbore::tune
