// The operations of a device by their ends: which of them another one may have waited for.
#pragma once

#include <cstdint>
#include <vector>

#include "timeline/device/trace.h"

namespace fullbore::timeline {

class OpsByEnd {
 public:
  explicit OpsByEnd(const DeviceTrace& trace);  // which outlives it

  const std::vector<uint32_t>& ops() const { return ops_; }
  // The first that ends after `t`.
  std::vector<uint32_t>::const_iterator After(int64_t t) const;

  // kNone where there is none, as below. The last that ended in (after_ns, until_ns].
  uint32_t Last(int64_t after_ns, int64_t until_ns) const;
  // The same, of another stream than this, and only some microseconds before until_ns.
  uint32_t LastElsewhere(uint16_t stream, int64_t after_ns, int64_t until_ns) const;
  // An operation of another stream that is about to end at `t`.
  uint32_t MadeRoomFor(uint16_t stream, int64_t t) const;

 private:
  const DeviceTrace& trace_;
  std::vector<uint32_t> ops_;
};

}  // namespace fullbore::timeline
