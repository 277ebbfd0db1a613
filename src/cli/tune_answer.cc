#include "cli/tune_answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/print.h"
#include "base/text.h"
#include "cli/output.h"
#include "measure/collect/run_place.h"
#include "tune/trial/losses.h"

namespace fullbore::cli {

namespace {

using tune::Answer;
using tune::AnswerContext;
using tune::Rate;
using tune::Trial;

constexpr size_t kColumns = 6;
using Row = std::array<std::string, kColumns>;

// In a table of rates in `unit`.
Row RowOf(const Trial& trial, const std::string& unit) {
  std::string rate = trial.rate ? RateText(*trial.rate) : std::string(tune::Name(trial.outcome));
  if (trial.rate && trial.unit != unit) rate += " " + trial.unit;
  if (trial.cut_short) rate += " (ended: too slow)";
  if (trial.apart) rate += " (apart)";
  if (trial.proves) rate += " (proof)";
  if (trial.noisy) rate += " (noisy)";
  return {tune::ToText(trial.settings),
          rate,
          trial.predicted ? FormatCount(*trial.predicted) : "",
          trial.busy ? FormatPercent(*trial.busy) : "",
          trial.peak_memory_bytes ? FormatBytes(static_cast<double>(*trial.peak_memory_bytes)) : "",
          FormatDuration(static_cast<int64_t>(trial.seconds * 1e9))};
}

void PrintTable(const std::vector<Trial>& trials) {
  if (trials.empty()) return;
  const std::string unit = trials.front().unit;
  std::vector<Row> rows = {{"setting", unit, "predicted", "busy", "memory", "took"}};
  for (const Trial& trial : trials) rows.push_back(RowOf(trial, unit));
  std::array<int, kColumns> widths{};
  const bool unicode = LocaleIsUtf8();
  for (Row& row : rows) {
    for (size_t i = 0; i < kColumns; ++i) {
      row[i] = Printable(row[i], unicode);
      widths[i] = std::max(widths[i], Columns(row[i]));
    }
  }
  for (const Row& row : rows) {
    std::string line = "  " + Pad(row[0], widths[0]);
    for (size_t i = 1; i < kColumns; ++i) {
      const auto blanks = static_cast<size_t>(std::max(0, widths[i] - Columns(row[i])));
      line += "  " + std::string(blanks, ' ') + row[i];
    }
    Print(stdout, "{}\n", line);
  }
}

void PrintRecommendation(const Answer& answer, const AnswerContext& context) {
  const Trial& chosen = *answer.recommended;
  if (answer.baseline && chosen.settings == answer.baseline->settings) {
    PrintWrapped("Recommended: the script as it is. Nothing that was tried is proven to be better.", 2, 4);
    return;
  }
  const std::string gain =
      fmt::format(": {:.2f}x ({:.2f} to {:.2f})", answer.gain.expected, answer.gain.low, answer.gain.high);
  PrintWrapped(fmt::format("Recommended: {}, {} {}{}", tune::ToText(chosen.settings), RateText(*chosen.rate),
                           chosen.unit, gain),
               2, 4);
  const tune::Advice advice = AdviceOf(answer, context);
  if (!advice.command.empty()) PrintWrapped(advice.command, 4, 6);
  for (const tune::Advice::Line& line : advice.lines)
    PrintWrapped(line.code + (line.where.empty() ? "" : "   " + collect::FromHere(line.where)), 4, 6);
  for (const std::string& change : advice.changes) PrintWrapped("may change " + change, 4, 6);
  PrintWrapped("without an edit: " + advice.without_edit, 4, 6);
}

void PrintCost(const Answer& answer, const AnswerContext& context) {
  const auto cost = CostOfAnEpoch(answer, context);
  if (!cost) return;
  PrintWrapped(fmt::format("An epoch of {} samples costs {:.4g} as it was, {:.4g} as recommended.",
                           FormatCount(static_cast<double>(cost->samples)), cost->before, cost->after),
               2, 4);
}

// Why each setting that could not be measured could not, once.
void PrintReasons(const std::vector<Trial>& trials) {
  std::vector<std::string> said;
  for (const Trial& trial : trials) {
    if (trial.ok() || trial.why.empty()) continue;
    std::string text = fmt::format("{}: {}", tune::Name(trial.outcome), trial.why);
    if (std::find(said.begin(), said.end(), text) != said.end()) continue;
    PrintWrapped(text, 2, 4);
    said.push_back(std::move(text));
  }
}

}  // namespace

void PrintAnswer(const Answer& answer, const AnswerContext& context) {
  Print(stdout, "\n");
  PrintTable(answer.trials);
  Print(stdout, "\n");
  if (!answer.recommended) {
    PrintWrapped("Nothing could be measured: " + context.reason, 2, 4);
    if (!context.resume.empty()) PrintWrapped(context.resume + " goes on", 2, 4);
    return;
  }
  PrintRecommendation(answer, context);
  for (const std::string& ground : tune::Grounds(answer)) PrintWrapped(ground, 2, 4);
  for (const std::string& sentence : tune::OfLargerBatches(answer)) PrintWrapped(sentence, 2, 4);
  if (!context.unlike_the_run.empty()) PrintWrapped(context.unlike_the_run, 2, 4);
  PrintCost(answer, context);
  if (answer.pareto.size() > 1) {
    PrintWrapped("Fastest for its memory:", 2, 4);
    for (const Trial& trial : answer.pareto) {
      PrintWrapped(fmt::format("{}  {} {}, {}", tune::ToText(trial.settings), RateText(*trial.rate),
                               trial.unit, FormatBytes(static_cast<double>(*trial.peak_memory_bytes))),
                   4, 6);
    }
  }
  for (const tune::LossDifference& each : tune::CompareLosses(answer.trials))
    PrintWrapped(tune::ToText(each), 2, 4);
  PrintReasons(answer.trials);
  for (const std::string& reason : answer.not_tried) PrintWrapped("not tried: " + reason, 2, 4);
  if (!context.held.empty()) {
    PrintWrapped(fmt::format("not turned, because they change training results: {} (--knobs all)",
                             fmt::join(context.held, ", ")),
                 2, 4);
  }
  if (!context.reason.empty()) PrintWrapped("not everything was tried: " + context.reason, 2, 4);
  if (!context.resume.empty()) PrintWrapped("interrupted; " + context.resume + " goes on", 2, 4);
}

}  // namespace fullbore::cli
