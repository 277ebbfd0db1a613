#include "record/collective.h"

#include <algorithm>
#include <string_view>

namespace fullbore::record {

namespace {

enum class Pattern { kAllReduce, kOneShare, kAllBytes, kUnknown };

// Backends and versions spell the same kind "all_gather", "allgather" or "_allgather_base".
Pattern PatternOf(std::string_view kind) {
  const auto has = [&](std::string_view part) { return kind.find(part) != std::string_view::npos; };
  for (const auto part : {"reduce_scatter", "all_gather", "allgather", "all_to_all", "alltoall"}) {
    if (has(part)) return Pattern::kOneShare;
  }
  if (has("all_reduce") || has("allreduce")) return Pattern::kAllReduce;
  return has("broadcast") || kind == "reduce" ? Pattern::kAllBytes : Pattern::kUnknown;
}

// nccl-tests, doc/PERFORMANCE.md, "Summary": the factor from algorithm to bus bandwidth.
double BusFactor(Pattern pattern, double ranks) {
  switch (pattern) {
    case Pattern::kAllReduce:
      return 2 * (ranks - 1) / ranks;
    case Pattern::kOneShare:
      return (ranks - 1) / ranks;
    case Pattern::kAllBytes:
      return 1;
    case Pattern::kUnknown:
      return 0;
  }
  return 0;
}

}  // namespace

std::optional<double> AlgorithmBandwidth(const CollectiveStats& stats) {
  if (!stats.bytes || *stats.bytes <= 0) return std::nullopt;
  int64_t ns = stats.bytes_ns;
  // The wait is a total over all calls: it can be subtracted only if the size of every call is known.
  if (stats.wait_ns && stats.bytes_ns == stats.sum_ns) ns -= std::min(ns, *stats.wait_ns);
  if (ns <= 0) return std::nullopt;
  return static_cast<double>(*stats.bytes) * 1e9 / static_cast<double>(ns);
}

std::optional<double> BusBandwidth(const CollectiveStats& stats) {
  const auto algorithm = AlgorithmBandwidth(stats);
  if (!algorithm || stats.group_size.value_or(0) < 2) return std::nullopt;
  const double factor = BusFactor(PatternOf(stats.kind), static_cast<double>(*stats.group_size));
  if (factor == 0) return std::nullopt;
  return *algorithm * factor;
}

}  // namespace fullbore::record
