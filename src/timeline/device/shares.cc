#include "timeline/device/shares.h"

#include <algorithm>

#include "base/clock.h"
#include "timeline/device/idle.h"
#include "timeline/device/order.h"
#include "timeline/device/threads.h"

namespace fullbore::timeline {

using record::HostOther;
using record::Share;

namespace {

// In a trace everything is sorted: the window only has to hold what runs at the same time.
constexpr size_t kConcurrentOps = 4096;

// By stream; empty where all belong to one device.
std::vector<bool> StreamsOfBusiestDevice(const DeviceTrace& trace) {
  const std::vector<uint16_t> device_of = DevicesOfStreams(trace);
  std::vector<int64_t> ops(device_of.size());
  for (const DeviceOp& op : trace.ops) ++ops[device_of[op.stream]];
  if (std::count_if(ops.begin(), ops.end(), [](int64_t count) { return count > 0; }) < 2) return {};
  const auto busiest = static_cast<uint16_t>(std::max_element(ops.begin(), ops.end()) - ops.begin());
  std::vector<bool> judged;
  for (const uint16_t device : device_of) judged.push_back(device == busiest);
  return judged;
}

std::vector<BusySpan> OthersAtWork(const DeviceTrace& trace, const DeviceShares& shares) {
  std::vector<BusySpan> spans;
  for (const DeviceOp& op : trace.ops) {
    if (shares.Judges(op)) continue;
    if (!spans.empty() && op.begin_ns <= spans.back().end_ns)
      spans.back().end_ns = std::max(spans.back().end_ns, op.end_ns);
    else
      spans.push_back({op.begin_ns, op.end_ns});
  }
  return spans;
}

// Takes pieces in order of time and adds each to its step. Pieces outside of all steps belong to none.
class StepFiller {
 public:
  StepFiller(const std::vector<StepBounds>& bounds, std::vector<record::Step>* steps)
      : bounds_(bounds), steps_(steps) {
    for (const StepBounds& bound : bounds) {
      record::Step step;
      step.index = static_cast<int64_t>(steps_->size());
      step.end_ns = bound.end_ns;
      step.wall_ns = bound.end_ns - bound.begin_ns;
      step.device_ns = 0;
      steps_->push_back(step);
    }
  }

  void Add(int64_t begin_ns, int64_t end_ns, Share share, HostOther part, bool busy) {
    while (at_ < bounds_.size() && bounds_[at_].end_ns <= begin_ns) ++at_;
    for (size_t i = at_; i < bounds_.size() && bounds_[i].begin_ns < end_ns; ++i) {
      const int64_t ns = std::min(end_ns, bounds_[i].end_ns) - std::max(begin_ns, bounds_[i].begin_ns);
      if (ns <= 0) continue;
      record::Step& step = (*steps_)[i];
      step.share_ns[Index(share)] += ns;
      if (share == Share::kHostOther) step.host_other_ns[static_cast<size_t>(part)] += ns;
      if (busy) step.device_ns += ns;
    }
  }

 private:
  const std::vector<StepBounds>& bounds_;
  std::vector<record::Step>* steps_;
  size_t at_ = 0;
};

class ShareSink : public DeviceSweep::Sink {
 public:
  ShareSink(const DeviceTrace& trace, const HostActivity& host, const std::vector<StepBounds>& bounds,
            const StepBounds& shown, DeviceShares* shares)
      : causes_(trace, host, OthersAtWork(trace, *shares)),
        filler_(bounds, &shares->steps),
        shown_(shown),
        shares_(shares) {}

  void Take(const Segment& segment) override {
    if (segment.mask == 0) {
      TakeIdle(segment);
      return;
    }
    shares_->totals.Add(segment.mask, segment.end_ns - segment.begin_ns);
    const Share share = (segment.mask & kComputeLanes) != 0 ? Share::kCompute
                        : (segment.mask & kCommLane) != 0   ? Share::kCommExposed
                                                            : Share::kCopyExposed;
    filler_.Add(segment.begin_ns, segment.end_ns, share, HostOther::kUnnamed, true);
    Show(segment.begin_ns, segment.end_ns, share);
    if (share == Share::kCommExposed) shares_->comm_exposed.Add(segment.begin_ns, segment.end_ns);
  }

  int64_t unexplained() const { return causes_.unexplained(); }

 private:
  void TakeIdle(const Segment& segment) {
    const auto& pieces = causes_.Divide(segment);
    for (const IdlePiece& piece : pieces) {
      filler_.Add(piece.begin_ns, piece.end_ns, piece.share, piece.part, false);
      Show(piece.begin_ns, piece.end_ns, piece.share);
      if (piece.call != kNone) shares_->idle_by_call[piece.call] += piece.end_ns - piece.begin_ns;
    }
    if (segment.next != kNoTag && !pieces.empty() && pieces.back().share != Share::kGap)
      ++shares_->late_launches;
  }

  void Show(int64_t begin_ns, int64_t end_ns, Share share) {
    begin_ns = std::max(begin_ns, shown_.begin_ns);
    end_ns = std::min(end_ns, shown_.end_ns);
    if (begin_ns >= end_ns) return;
    auto& spans = shares_->spans;
    if (!spans.empty() && spans.back().share == share && spans.back().end_ns == begin_ns)
      spans.back().end_ns = end_ns;
    else
      spans.push_back({begin_ns, end_ns, share});
  }

  IdleCauses causes_;
  StepFiller filler_;
  const StepBounds shown_;
  DeviceShares* const shares_;
};

}  // namespace

void ExposedTime::Add(int64_t begin_ns, int64_t end_ns) {
  const int64_t before = stretches_.empty() ? 0
                                            : stretches_.back().before_ns + stretches_.back().end_ns -
                                                  stretches_.back().begin_ns;
  stretches_.push_back({begin_ns, end_ns, before});
}

int64_t ExposedTime::Until(int64_t t_ns) const {
  auto it = std::partition_point(stretches_.begin(), stretches_.end(),
                                 [t_ns](const Stretch& stretch) { return stretch.begin_ns < t_ns; });
  if (it == stretches_.begin()) return 0;
  --it;
  return it->before_ns + std::min(t_ns, it->end_ns) - it->begin_ns;
}

int64_t ExposedTime::Within(int64_t begin_ns, int64_t end_ns) const {
  return Until(end_ns) - Until(begin_ns);
}

DeviceShares ShareDeviceTime(const DeviceTrace& trace, const HostActivity& host,
                             const std::vector<StepBounds>& bounds, const StepBounds& shown) {
  DeviceShares shares;
  if (!trace.has_device_activity()) return shares;
  shares.judged_streams = StreamsOfBusiestDevice(trace);
  shares.begin_ns = trace.ops[0].begin_ns;
  for (const DeviceOp& op : trace.ops) shares.end_ns = std::max(shares.end_ns, op.end_ns);
  int64_t sweep_begin = shares.begin_ns;
  int64_t sweep_end = shares.end_ns;
  if (!bounds.empty()) {
    sweep_begin = std::min(sweep_begin, bounds.front().begin_ns);
    sweep_end = std::max(sweep_end, bounds.back().end_ns);
  }
  ShareSink sink(trace, host, bounds, shown, &shares);
  DeviceSweep sweep(kConcurrentOps, sweep_begin, &sink);
  for (size_t i = 0; i < trace.ops.size(); ++i) {
    const DeviceOp& op = trace.ops[i];
    if (!shares.Judges(op)) continue;
    sweep.AdvanceTo(op.begin_ns);
    sweep.Add(op.begin_ns, op.end_ns, op.lane, static_cast<uint32_t>(i));
  }
  sweep.Finish(sweep_end);
  shares.unexplained_idle = sink.unexplained();
  return shares;
}

std::vector<record::StepWindow> WindowsOf(const std::vector<record::Step>& steps) {
  std::vector<record::StepWindow> windows;
  for (const record::Step& step : steps) {
    if (windows.empty() || step.end_ns - windows.back().begin_ns > kNsPerSecond) {
      record::StepWindow window;
      window.begin_ns = step.end_ns - step.wall_ns;
      window.first_step = step.index;
      window.min_wall_ns = step.wall_ns;
      windows.push_back(window);
    }
    record::StepWindow& window = windows.back();
    window.end_ns = step.end_ns;
    ++window.steps;
    window.samples += step.samples;
    window.min_wall_ns = std::min(window.min_wall_ns, step.wall_ns);
    window.max_wall_ns = std::max(window.max_wall_ns, step.wall_ns);
    for (size_t i = 0; i < record::kShareCount; ++i) window.share_ns[i] += step.share_ns[i];
    for (size_t i = 0; i < record::kHostOtherCount; ++i) window.host_other_ns[i] += step.host_other_ns[i];
  }
  return windows;
}

}  // namespace fullbore::timeline
