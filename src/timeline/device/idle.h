// Why the device had nothing to do. An idle interval is ended by an operation; what its launching thread did
// between the start of the interval and the launch is the cause:
//
//   launched before the device ran dry             -> gap: both operations were queued, the device itself
//                                                     took its time
//   the thread was in the data loader's `next`     -> data_wait
//   it was blocked, or had been and then had to
//   launch again with an empty queue               -> sync
//   it was saving, validating, collecting garbage,
//   or away                                        -> host_other
//   otherwise it was on its way to the launch      -> launch
//
// Where launches ran nothing that was recorded (Noticed::bare), the device may not have been idle at all: that time
// is host_other without a name, whatever the host did. Where
// another device of the same process works meanwhile, this one waits for it as it would in a collective: comm_exposed.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "record/share.h"
#include "timeline/device/host.h"
#include "timeline/device/sweep.h"
#include "timeline/device/threads.h"
#include "timeline/device/trace.h"

namespace fullbore::timeline {

struct IdlePiece {
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  record::Share share = record::Share::kLaunch;
  record::HostOther part = record::HostOther::kUnnamed;
  uint32_t call = kNone;  // the blocking call behind kSync
};

class IdleCauses {
 public:
  // `others`: when other devices of the process work, of which this one may wait for something; by begin.
  IdleCauses(const DeviceTrace& trace, const HostActivity& host, std::vector<BusySpan> others = {})
      : trace_(trace), host_(host), others_(std::move(others)) {}

  // Pieces that cover the idle segment, in order. The vector is reused from call to call.
  const std::vector<IdlePiece>& Divide(const Segment& idle);

  // The intervals that ended with an operation whose launch is not known.
  int64_t unexplained() const { return unexplained_; }

 private:
  void DivideKnown(const Segment& idle);
  // Gives what the stretches cover of the idle segment to another share.
  template <typename Stretches>
  void Overlay(const Segment& idle, const Stretches& stretches, record::Share share);
  void DivideHostTime(uint16_t thread, int64_t begin_ns, int64_t launch_ns, int64_t end_ns,
                      uint32_t blocking_launch);
  void Add(int64_t begin_ns, int64_t end_ns, record::Share share, uint32_t call = kNone,
           record::HostOther part = record::HostOther::kUnnamed);

  const DeviceTrace& trace_;
  const HostActivity& host_;
  const std::vector<BusySpan> others_;
  std::vector<IdlePiece> pieces_;
  std::vector<HostPiece> host_pieces_;
  int64_t unexplained_ = 0;
};

}  // namespace fullbore::timeline
