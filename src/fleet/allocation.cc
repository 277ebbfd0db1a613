#include "fleet/allocation.h"

#include <algorithm>
#include <optional>

#include "base/clock.h"
#include "base/text.h"
#include "record/limits.h"

namespace fullbore::fleet {

namespace {

// None of these can hold a '|'.
enum Field { kId, kUser, kStart, kEnd, kElapsed, kState, kResources, kFields };
constexpr char kFormat[] = "--format=JobIDRaw,User,Start,End,ElapsedRaw,State,AllocTRES";
constexpr int64_t kLastUnixS = record::kMaxWallOffsetNs / kNsPerSecond, kMostDevices = 1 << 20;

std::optional<int64_t> Seconds(std::string_view text) {
  const auto seconds = ParseInt(text);
  const bool holds = seconds && *seconds >= 0 && *seconds <= kLastUnixS;
  return holds ? seconds : std::nullopt;
}

// Of "billing=8,cpu=8,gres/gpu:h100=2,gres/gpu=2,node=1"; the kinds of GPUs are in the sum.
int64_t DevicesIn(std::string_view resources) {
  constexpr std::string_view kKey = "gres/gpu=";
  for (const std::string_view each : Split(resources, ',')) {
    if (!each.starts_with(kKey)) continue;
    return std::clamp<int64_t>(ParseInt(each.substr(kKey.size())).value_or(0), 0, kMostDevices);
  }
  return 0;
}

std::optional<Allocation> AllocationOf(const std::vector<std::string_view>& fields) {
  const auto start = Seconds(fields[kStart]), elapsed = Seconds(fields[kElapsed]);
  if (!start || !elapsed) return std::nullopt;
  const int64_t end = Seconds(fields[kEnd]).value_or(*start + *elapsed);
  return Allocation{*start * kNsPerSecond, std::max(*start, end) * kNsPerSecond,
                    DevicesIn(fields[kResources]), std::string(fields[kState])};
}

}  // namespace

std::vector<std::string> SacctArguments(const std::string& job) {
  return {"--allocations", "--duplicates", "--parsable2", "--noheader", kFormat, "--jobs=" + job};
}

std::vector<Allocation> AllocationsIn(std::string_view said, std::string_view job, std::string_view user) {
  std::vector<Allocation> found;
  for (const std::string_view line : Split(said, '\n')) {
    const auto fields = Split(line, '|');
    if (fields.size() != kFields || fields[kId] != job) continue;
    if (!user.empty() && fields[kUser] != user) continue;
    if (auto allocation = AllocationOf(fields)) found.push_back(std::move(*allocation));
  }
  std::ranges::stable_sort(found, {}, &Allocation::begin_unix_ns);
  return found;
}

}  // namespace fullbore::fleet
