// The labels that scripts put before processes and threads when they merge the traces of several ranks into one file:
// "[Rank 0] 4242", "[TP01-PP00] 4242", "rank3_4242", "Rank 3: 4242".
#pragma once

#include <optional>
#include <string_view>
#include <vector>

namespace fullbore::ingest::kineto {

struct RankLabel {
  std::string_view label;  // "Rank 0"
  std::string_view rest;   // "4242"
};

std::optional<RankLabel> SplitRankLabel(std::string_view process);

// By label: its only number, or else its place among the labels, which are sorted.
std::vector<int> RanksOfLabels(const std::vector<std::string_view>& labels);

}  // namespace fullbore::ingest::kineto
