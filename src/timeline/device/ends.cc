#include "timeline/device/ends.h"

#include <algorithm>
#include <numeric>

namespace fullbore::timeline {

namespace {

// An operation that waited for another stream begins this soon after what it waited for: 1 to 12 us in the
// traces that the tests read.
constexpr int64_t kEventNs = 15'000;
// An operation that waited for room on the device begins while the last blocks of another one are still
// running: up to 293 us before its end in the traces that the tests read.
constexpr int64_t kLastBlocksNs = 300'000;

}  // namespace

OpsByEnd::OpsByEnd(const DeviceTrace& trace) : trace_(trace), ops_(trace.ops.size()) {
  std::iota(ops_.begin(), ops_.end(), 0);
  std::stable_sort(ops_.begin(), ops_.end(),
                   [&](uint32_t a, uint32_t b) { return trace.ops[a].end_ns < trace.ops[b].end_ns; });
}

std::vector<uint32_t>::const_iterator OpsByEnd::After(int64_t t) const {
  return std::partition_point(ops_.begin(), ops_.end(),
                              [&](uint32_t i) { return trace_.ops[i].end_ns <= t; });
}

uint32_t OpsByEnd::Last(int64_t after_ns, int64_t until_ns) const {
  const auto past = After(until_ns);
  if (past == ops_.begin()) return kNone;
  const uint32_t last = *std::prev(past);
  return trace_.ops[last].end_ns > after_ns ? last : kNone;
}

uint32_t OpsByEnd::LastElsewhere(uint16_t stream, int64_t after_ns, int64_t until_ns) const {
  auto past = After(until_ns);
  while (past != ops_.begin()) {
    const uint32_t i = *--past;
    if (trace_.ops[i].end_ns <= after_ns || until_ns - trace_.ops[i].end_ns > kEventNs) return kNone;
    if (trace_.ops[i].stream != stream) return i;
  }
  return kNone;
}

uint32_t OpsByEnd::MadeRoomFor(uint16_t stream, int64_t t) const {
  for (auto next = After(t - 1); next != ops_.end(); ++next) {
    const DeviceOp& op = trace_.ops[*next];
    const int64_t left = op.end_ns - t;
    if (left > kLastBlocksNs) return kNone;
    if (op.stream != stream && op.begin_ns < t && left * 2 <= op.end_ns - op.begin_ns) return *next;
  }
  return kNone;
}

}  // namespace fullbore::timeline
