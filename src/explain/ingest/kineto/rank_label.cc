#include "explain/ingest/kineto/rank_label.h"

#include <algorithm>
#include <cctype>
#include <numeric>
#include <set>

#include "base/text.h"

namespace fullbore::ingest::kineto {
namespace {

constexpr size_t kMaxLabel = 64;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

bool StartsWithRank(std::string_view text) {
  constexpr std::string_view kRank = "rank";
  return text.size() > kRank.size() &&
         std::equal(kRank.begin(), kRank.end(), text.begin(),
                    [](char a, char b) { return a == std::tolower(static_cast<unsigned char>(b)); });
}

// The only number in a label, -1 where there is none or several.
int OnlyNumber(std::string_view label) {
  const auto begin = std::find_if(label.begin(), label.end(), IsDigit);
  const auto end = std::find_if_not(begin, label.end(), IsDigit);
  if (begin == end || std::any_of(end, label.end(), IsDigit)) return -1;
  constexpr int64_t kMaxRank = 1 << 20;
  const auto number = ParseInt(std::string_view(begin, end));
  return number && *number <= kMaxRank ? static_cast<int>(*number) : -1;
}

}  // namespace

std::optional<RankLabel> SplitRankLabel(std::string_view process) {
  if (process.starts_with('[')) {
    const size_t end = process.find(']');
    if (end == std::string_view::npos || end < 2 || end > kMaxLabel) return std::nullopt;
    const std::string_view label = process.substr(1, end - 1);
    if (std::none_of(label.begin(), label.end(), IsDigit)) return std::nullopt;
    return RankLabel{label, Trim(process.substr(end + 1))};
  }
  if (!StartsWithRank(process)) return std::nullopt;
  const size_t digits = process.find_first_of("0123456789");
  if (digits == std::string_view::npos || digits > 6) return std::nullopt;  // "rank", and two signs at most
  const size_t end = std::min(process.find_first_not_of("0123456789", digits), process.size());
  const size_t rest = std::min(process.find_first_not_of(" _-:./", end), process.size());
  if (end > kMaxLabel || (rest == end && end < process.size())) return std::nullopt;
  return RankLabel{process.substr(0, end), process.substr(rest)};
}

std::vector<int> RanksOfLabels(const std::vector<std::string_view>& labels) {
  std::vector<int> ranks;
  for (const std::string_view label : labels) ranks.push_back(OnlyNumber(label));
  const std::set<int> different(ranks.begin(), ranks.end());
  if (different.size() < ranks.size() || different.contains(-1)) std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

}  // namespace fullbore::ingest::kineto
