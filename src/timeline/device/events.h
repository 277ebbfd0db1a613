// Which operation another one, or a call of the host, waited for, where the recorder says so
// (DeviceTrace::waits).
#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "timeline/device/trace.h"

namespace fullbore::timeline {

class DeviceEvents {
 public:
  explicit DeviceEvents(const DeviceTrace& trace);

  // The operations of other streams that this one waited for, through recorded events.
  std::vector<uint32_t> WaitedForBy(uint32_t op) const;

  // The last operation of the stream that the call waited for; kNone if that is not recorded, or had ended
  // before.
  uint32_t WaitedForBy(const HostCall& call) const;

 private:
  using Ops = std::vector<uint32_t>;

  void ReadStreamWaits();
  uint32_t LastLaunchedOn(uint16_t stream, int64_t before_ns) const;
  uint32_t FirstLaunchedOn(uint16_t stream, int64_t from_ns) const;
  Ops::const_iterator FirstLaunch(const Ops& ops, int64_t from_ns) const;

  const DeviceTrace& trace_;
  std::map<uint16_t, Ops> launched_on_;                    // by stream, in the order of their launches
  std::multimap<uint32_t, uint32_t> events_;               // operation -> what it waited for
  std::unordered_map<uint64_t, const WaitRecord*> waits_;  // by the call's correlation
};

}  // namespace fullbore::timeline
