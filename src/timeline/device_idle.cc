#include "timeline/device_idle.h"

#include <algorithm>

namespace fullbore::timeline {

using record::HostOther;
using record::Share;

const std::vector<IdlePiece>& IdleCauses::Divide(const Segment& idle) {
  pieces_.clear();
  const uint16_t main_thread = trace_.main_thread();
  if (idle.next == kNoTag) {  // after the last operation: the main thread decides
    DivideHostTime(main_thread, idle.begin_ns, idle.end_ns, idle.end_ns, kNone);
    return pieces_;
  }
  const DeviceOp& op = trace_.ops[idle.next];
  if (op.call == kNone) {
    ++unexplained_;
    if (trace_.calls.empty() && trace_.spans.empty()) {
      Add(idle.begin_ns, idle.end_ns, Share::kHostOther);  // nothing is known of the host
    } else {
      DivideHostTime(main_thread, idle.begin_ns, idle.end_ns, idle.end_ns, kNone);
    }
    return pieces_;
  }
  if (op.launch_end_ns <= idle.begin_ns) {
    Add(idle.begin_ns, idle.end_ns, Share::kGap);
    return pieces_;
  }
  const int64_t launch_ns = std::clamp(op.launch_begin_ns, idle.begin_ns, idle.end_ns);
  // A call that waits for its own operation (a pageable copy) holds the thread: it caused the wait.
  DivideHostTime(op.launch_thread, idle.begin_ns, launch_ns, idle.end_ns,
                 host_.Blocks(op.call) ? op.call : kNone);
  return pieces_;
}

void IdleCauses::DivideHostTime(uint16_t thread, int64_t begin_ns, int64_t launch_ns, int64_t end_ns,
                                uint32_t blocking_launch) {
  host_pieces_.clear();
  host_.Look(thread, begin_ns, launch_ns, &host_pieces_);
  uint32_t emptied_by = kNone;  // the blocking call after which the queue is still empty
  for (const HostPiece& piece : host_pieces_) {
    switch (piece.state) {
      case HostState::kLoader:
        Add(piece.begin_ns, piece.end_ns, Share::kDataWait);
        emptied_by = kNone;
        break;
      case HostState::kSync:
        Add(piece.begin_ns, piece.end_ns, Share::kSync, piece.call);
        emptied_by = piece.call;
        break;
      case HostState::kCheckpoint:
        Add(piece.begin_ns, piece.end_ns, Share::kHostOther, kNone, HostOther::kCheckpoint);
        emptied_by = kNone;
        break;
      case HostState::kValidation:
        Add(piece.begin_ns, piece.end_ns, Share::kHostOther, kNone, HostOther::kValidation);
        emptied_by = kNone;
        break;
      case HostState::kGarbageCollection:
        Add(piece.begin_ns, piece.end_ns, Share::kHostOther, kNone, HostOther::kGarbageCollection);
        emptied_by = kNone;
        break;
      case HostState::kAway:
        Add(piece.begin_ns, piece.end_ns, Share::kHostOther);
        emptied_by = kNone;
        break;
      case HostState::kWorking:
        Add(piece.begin_ns, piece.end_ns, emptied_by == kNone ? Share::kLaunch : Share::kSync, emptied_by);
        break;
    }
  }
  if (blocking_launch != kNone) emptied_by = blocking_launch;
  if (launch_ns < end_ns)
    Add(launch_ns, end_ns, emptied_by == kNone ? Share::kLaunch : Share::kSync, emptied_by);
}

void IdleCauses::Add(int64_t begin_ns, int64_t end_ns, Share share, uint32_t call, HostOther part) {
  if (begin_ns >= end_ns) return;
  if (!pieces_.empty()) {
    IdlePiece& last = pieces_.back();
    if (last.share == share && last.call == call && last.part == part) {
      last.end_ns = end_ns;
      return;
    }
  }
  pieces_.push_back({begin_ns, end_ns, share, part, call});
}

}  // namespace fullbore::timeline
