#include "explain/fitness/fitness.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "explain/fitness/conditions.h"

namespace fullbore::fitness {

namespace {

// "The file ..." after a colon; "CUPTI ..." stays.
std::string WithoutCapital(std::string text) {
  if (text.size() > 1 && std::islower(static_cast<unsigned char>(text[1])) != 0)
    text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  return text;
}

}  // namespace

std::string_view Name(Conclusion conclusion) {
  switch (conclusion) {
    case Conclusion::kAnything:
      return "anything";
    case Conclusion::kGains:
      return "gains";
    case Conclusion::kWhatIf:
      return "what-if";
    case Conclusion::kSmallGains:
      return "small-gains";
    case Conclusion::kIdleTime:
      return "idle-time";
    case Conclusion::kHealthy:
      return "healthy";
    case Conclusion::kRates:
      return "rates";
    case Conclusion::kOfTheDevice:
      return "of-the-device";
  }
  return "";
}

bool Condition::Forbids(Conclusion conclusion) const {
  return std::ranges::find(forbids, conclusion) != forbids.end();
}

const Condition* Fitness::WhyNot(Conclusion conclusion) const {
  const bool of_findings = conclusion != Conclusion::kRates;
  const auto found = std::ranges::find_if(conditions, [&](const Condition& condition) {
    return condition.Forbids(conclusion) || (of_findings && condition.Forbids(Conclusion::kAnything));
  });
  return found == conditions.end() ? nullptr : &*found;
}

bool Fitness::Forbids(Conclusion conclusion) const { return WhyNot(conclusion) != nullptr; }

std::string Fitness::Refusal() const {
  const Condition* why = WhyNot(Conclusion::kAnything);
  if (why == nullptr) return "";
  const char* what = why->id == "too-early" ? "Too early to judge" : "This recording cannot be judged";
  return fmt::format("{}: {}{}{}", what, WithoutCapital(why->says), why->mend.empty() ? "" : " ", why->mend);
}

Fitness FitnessOf(const Known& known) {
  Fitness fitness;
  std::vector<Condition>& all = fitness.conditions;
  const auto forbids_everything = [](const Condition& condition) {
    return condition.Forbids(Conclusion::kAnything);
  };
  for (const Judge judge : OfTheRecording()) {
    if (auto condition = judge(known)) all.push_back(std::move(*condition));
  }
  std::stable_partition(all.begin(), all.end(), forbids_everything);
  if (!fitness.CanBeJudged()) return fitness;  // nothing is said of its steps, then
  const auto of_the_recording = static_cast<std::ptrdiff_t>(all.size());
  for (const Judge judge : OfTheSteps()) {
    if (auto condition = judge(known)) all.push_back(std::move(*condition));
  }
  if (const auto first = std::ranges::find_if(all, forbids_everything); first != all.end()) {
    Condition refusal = std::move(*first);
    all.erase(all.begin() + of_the_recording, all.end());
    all.insert(all.begin(), std::move(refusal));
  }
  return fitness;
}

void AddRank(int rank, const Known& known, Fitness& fitness) {
  for (const Judge judge : OfTheRecording()) {
    auto condition = judge(known);
    if (!condition ||
        std::ranges::find(fitness.conditions, condition->id, &Condition::id) != fitness.conditions.end())
      continue;
    condition->says = fmt::format("Rank {}: {}", rank, WithoutCapital(std::move(condition->says)));
    if (condition->Forbids(Conclusion::kAnything))
      condition->forbids = {Conclusion::kGains, Conclusion::kWhatIf};
    fitness.conditions.push_back(std::move(*condition));
  }
}

}  // namespace fullbore::fitness
