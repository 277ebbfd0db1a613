// Two to eight recordings beside each other: what of them differs, as a table whose faces are the terminal, Markdown and
// a page (compared_text.h, compared_page.h). The first is what the others are compared with.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "explain/diagnose/compare.h"
#include "explain/diagnose/diagnosis.h"

namespace fullbore::report {

inline constexpr size_t kFewestCompared = 2, kMostCompared = 8;

// What a condition of --fail-if says of one of them.
struct ConditionAnswer {
  enum class Outcome : uint8_t { kPassed, kFailed, kUnknown };
  size_t run = 1;  // which; never the first
  std::string condition;
  Outcome outcome = Outcome::kPassed;
};

struct Compared {
  std::vector<diagnose::Diagnosis> runs;
  std::vector<diagnose::Comparison> against_first;  // of all but the first
  std::vector<ConditionAnswer> conditions;

  // The conditions that hold for any of them, each once.
  std::vector<std::string> FailedIf() const;
};

struct ComparedRow {
  std::string label;
  std::vector<std::string> cells;  // one a run
};
struct ComparedSection {
  std::string title;
  std::vector<ComparedRow> rows;
};
struct ComparedTable {
  std::vector<std::string> runs;  // the heads of the columns
  std::vector<ComparedSection> sections;
};

// Sections in which nothing differs are left out. Differences are called so only where they are more than noise.
ComparedTable TableOf(const Compared& compared);

// "fullbore.comparisons/1"
nlohmann::ordered_json ToJson(const Compared& compared);

}  // namespace fullbore::report
