#include "timeline/device/idle.h"

#include <algorithm>
#include <utility>

namespace fullbore::timeline {

using record::HostOther;
using record::Share;

const std::vector<IdlePiece>& IdleCauses::Divide(const Segment& idle) {
  DivideKnown(idle);
  Overlay(idle, others_, Share::kCommExposed);
  Overlay(idle, trace_.noticed.bare, Share::kHostOther);
  return pieces_;
}

template <typename Stretches>
void IdleCauses::Overlay(const Segment& idle, const Stretches& stretches, Share share) {
  auto stretch = std::partition_point(stretches.begin(), stretches.end(),
                                      [&](const auto& other) { return other.end_ns <= idle.begin_ns; });
  if (stretch == stretches.end() || stretch->begin_ns >= idle.end_ns) return;
  const std::vector<IdlePiece> pieces = std::exchange(pieces_, {});
  for (const IdlePiece& piece : pieces) {
    int64_t at = piece.begin_ns;
    while (stretch != stretches.end() && stretch->begin_ns < piece.end_ns) {
      const int64_t from = std::max(at, stretch->begin_ns), until = std::min(piece.end_ns, stretch->end_ns);
      Add(at, from, piece.share, piece.call, piece.part);
      Add(from, until, share);
      at = std::max(at, until);
      if (stretch->end_ns > piece.end_ns) break;
      ++stretch;
    }
    Add(at, piece.end_ns, piece.share, piece.call, piece.part);
  }
}

void IdleCauses::DivideKnown(const Segment& idle) {
  pieces_.clear();
  const uint16_t main_thread = trace_.main_thread();
  if (idle.next == kNoTag) {  // after the last operation: the main thread decides
    DivideHostTime(main_thread, idle.begin_ns, idle.end_ns, idle.end_ns, kNone);
    return;
  }
  const DeviceOp& op = trace_.ops[idle.next];
  if (op.call == kNone) {
    ++unexplained_;
    if (trace_.calls.empty() && trace_.spans.empty()) {
      Add(idle.begin_ns, idle.end_ns, Share::kHostOther);  // nothing is known of the host
    } else {
      DivideHostTime(main_thread, idle.begin_ns, idle.end_ns, idle.end_ns, kNone);
    }
    return;
  }
  if (op.launch_end_ns <= idle.begin_ns) {
    Add(idle.begin_ns, idle.end_ns, Share::kGap);
    return;
  }
  const int64_t launch_ns = std::clamp(op.launch_begin_ns, idle.begin_ns, idle.end_ns);
  // A call that waits for its own operation (a pageable copy) holds the thread: it caused the wait.
  DivideHostTime(op.launch_thread, idle.begin_ns, launch_ns, idle.end_ns,
                 host_.Blocks(op.call) ? op.call : kNone);
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
