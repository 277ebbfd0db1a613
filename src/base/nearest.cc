#include "base/nearest.h"

#include <algorithm>

namespace fullbore {

namespace {

constexpr size_t kMaxMistyped = 3;   // letters, for words of any length
constexpr size_t kMinContained = 3;  // "in" occurs in too many names

size_t TypingMistakesIn(size_t letters) { return std::clamp<size_t>(letters / 3, 1, kMaxMistyped); }

}  // namespace

// Optimal string alignment distance: the usual table kept in three rows, because a swap looks two rows back.
size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> before(b.size() + 1), above(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    before.swap(above);
    above.swap(row);
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const bool same = a[i - 1] == b[j - 1];
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (same ? 0 : 1)});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row[b.size()];
}

std::optional<std::string> Nearest(std::string_view word, const std::vector<std::string>& candidates) {
  constexpr size_t kMaxLetters = 64;  // no name is longer, and the table grows with the product
  if (word.empty() || word.size() > kMaxLetters) return std::nullopt;
  size_t least = TypingMistakesIn(word.size()) + 1;
  std::optional<std::string> nearest;
  for (const std::string& candidate : candidates) {
    const size_t distance = EditDistance(word, candidate);
    if (distance >= least) continue;
    least = distance;
    nearest = candidate;
  }
  if (nearest || word.size() < kMinContained) return nearest;
  for (const std::string& candidate : candidates) {
    if (candidate.find(word) == std::string::npos) continue;
    if (nearest) return std::nullopt;
    nearest = candidate;
  }
  return nearest;
}

}  // namespace fullbore
