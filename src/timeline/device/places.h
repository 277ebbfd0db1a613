// Where in the program a call was made.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "timeline/device/trace.h"

namespace fullbore::timeline {

class Places {
 public:
  explicit Places(const DeviceTrace& trace);

  // "aten::item, train.py(81): step": the outermost operator around the call and the user's innermost Python
  // function; what is known of both, else "".
  std::string Of(const HostCall& call) const;

 private:
  const DeviceTrace& trace_;
  std::vector<std::vector<uint32_t>> by_thread_;  // spans, sorted by begin
};

}  // namespace fullbore::timeline
