#include "watch/announcer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "explain/diagnose/judge/judge.h"

namespace fullbore::watch {

namespace {

constexpr int64_t kFewestSteps = 20;
constexpr int kSure = 2;        // looks in a row that must agree
constexpr int kForGood = 3;     // the same where another verdict was said before
constexpr int kMostLines = 5;   // in a run: whoever has not acted by then does not want to
constexpr double kFelt = 1.05;  // a smaller gain is no news

bool IsUrgent(const Verdict& verdict) {
  const auto rows = diagnose::AllFindings();
  const auto row = std::ranges::find(rows, verdict.id, &diagnose::FindingRow::id);
  return row != rows.end() && row->haste == diagnose::Haste::kUrgent && verdict.critical;
}

// All of the range is a gain that is felt. How far it reaches upwards takes nothing from that.
bool IsSureToGain(const Verdict& verdict) {
  if (!verdict.gain || verdict.noisy) return false;
  return verdict.gain->low >= kFelt;
}

bool IsNews(const Verdict& verdict) {
  return verdict.steps >= kFewestSteps && (IsSureToGain(verdict) || IsUrgent(verdict));
}

// "Training waits ..." as a part of a sentence; "GPU 0 ..." stays.
std::string WithoutCapital(std::string title) {
  const bool word = title.size() > 1 && std::islower(static_cast<unsigned char>(title[1])) != 0;
  if (word) title[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(title[0])));
  ReplaceFullStop(title, "");
  return title;
}

std::string InWords(const Verdict& verdict) {
  std::string line = WithoutCapital(verdict.title);
  if (!IsSureToGain(verdict)) return line;
  const Verdict::Gain& gain = *verdict.gain;
  return line + fmt::format("; {} would bring {:.2f}x ({:.2f}x to {:.2f}x)",
                            verdict.change.empty() ? "curing that" : verdict.change, gain.expected, gain.low,
                            gain.high);
}

}  // namespace

std::optional<Verdict> VerdictOf(const nlohmann::json& report) try {
  const nlohmann::json& first = report.at("findings").at(0);
  Verdict verdict;
  verdict.id = first.at("id");
  verdict.cause = first.value("cause", "");
  verdict.title = first.at("title");
  verdict.change = first.value("change", "");
  verdict.critical = first.at("severity") == "critical";
  const nlohmann::json window = report.value("window", nlohmann::json::object());
  verdict.noisy = first.value("doubtful", false);
  verdict.steps = window.value("steps", int64_t{0});
  if (const auto gain = first.find("speedup"); gain != first.end())
    verdict.gain = Verdict::Gain{gain->at("expected"), gain->at("low"), gain->at("high")};
  return verdict;
} catch (const nlohmann::json::exception&) {
  return std::nullopt;
}

std::optional<std::string> Announcer::Heard(const Verdict& verdict) {
  agreeing_ = agreeing_ > 0 && verdict.SameAs(last_) ? agreeing_ + 1 : 1;
  last_ = verdict;
  const int needed = lines_ == 0 ? kSure : kForGood;
  const bool said_before = lines_ > 0 && verdict.SameAs(said_);
  if (said_before || lines_ >= kMostLines || agreeing_ < needed || !IsNews(verdict)) return std::nullopt;
  said_ = verdict;
  ++lines_;
  return InWords(verdict);
}

}  // namespace fullbore::watch
