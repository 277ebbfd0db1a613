// Which part of a step a thread is in: from the spans of autograd, the optimizer and the validation.
#pragma once

#include <cstdint>
#include <vector>

#include "record/step_graph.h"
#include "timeline/device/trace.h"

namespace fullbore::timeline {

class Phases {
 public:
  explicit Phases(const DeviceTrace& trace);

  // Forward where nothing else is recorded; on other threads than the training's, which launch for the
  // backward pass as far as traces show, backward.
  record::Phase At(uint16_t thread, int64_t t_ns) const;

 private:
  struct Stretch {
    int64_t begin_ns, end_ns;
    record::Phase phase;
  };

  using ByThread = std::vector<std::vector<Stretch>>;  // by begin
  static const Stretch* Covering(const std::vector<Stretch>& stretches, int64_t t_ns);

  uint16_t main_thread_;
  ByThread by_thread_, recomputations_;
};

}  // namespace fullbore::timeline
