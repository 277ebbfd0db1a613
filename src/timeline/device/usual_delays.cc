#include "timeline/device/usual_delays.h"

#include <algorithm>
#include <map>

namespace fullbore::timeline {

UsualDelays UsualDelaysOf(const DeviceTrace& trace) {
  std::map<uint16_t, int64_t> stream_end;
  std::vector<int64_t> gaps;
  int64_t least_delay_ns = INT64_MAX;
  for (const DeviceOp& op : trace.ops) {
    const auto [place, first] = stream_end.try_emplace(op.stream, INT64_MIN);
    const int64_t free_ns = place->second;
    if (op.call != kNone && !first) {
      if (op.launch_end_ns + kFollowNs < free_ns && op.begin_ns >= free_ns)
        gaps.push_back(op.begin_ns - free_ns);
      if (op.launch_begin_ns > free_ns && op.begin_ns >= op.launch_begin_ns)
        least_delay_ns = std::min(least_delay_ns, op.begin_ns - op.launch_begin_ns);
    }
    place->second = std::max(place->second, op.end_ns);
  }
  if (least_delay_ns == INT64_MAX) least_delay_ns = 0;
  if (gaps.empty()) return {0, least_delay_ns};
  const auto middle = gaps.begin() + static_cast<std::ptrdiff_t>(gaps.size() / 2);
  std::nth_element(gaps.begin(), middle, gaps.end());
  return {*middle, least_delay_ns};
}

int64_t UsualLaunchNs(const DeviceTrace& trace, const std::vector<uint32_t>& own_op) {
  std::vector<int64_t> durations;
  for (uint32_t c = 0; c < trace.calls.size(); ++c) {
    if (own_op[c] != kNone && trace.ops[own_op[c]].kernel)
      durations.push_back(trace.calls[c].end_ns - trace.calls[c].begin_ns);
  }
  if (durations.empty()) return 0;
  const auto quarter = durations.begin() + static_cast<std::ptrdiff_t>(durations.size() / 4);
  std::nth_element(durations.begin(), quarter, durations.end());
  return *quarter;
}

}  // namespace fullbore::timeline
