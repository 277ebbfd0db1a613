#include "timeline/device/timeline.h"

#include <algorithm>
#include <map>
#include <unordered_map>

namespace fullbore::timeline {
namespace {

using record::Share;
using record::StepTimeline;
using Piece = StepTimeline::Piece;

// What is deeper than this is not drawn: operators call operators, but who looks for one looks near the top.
constexpr uint8_t kMaxDepth = 5;

Share ShareOf(Lane lane) {
  if ((Bit(lane) & kComputeLanes) != 0) return Share::kCompute;
  return lane == Lane::kComm ? Share::kCommExposed : Share::kCopyExposed;
}

std::optional<Share> ShareOf(SpanKind kind) {
  switch (kind) {
    case SpanKind::kLoader:
      return Share::kDataWait;
    case SpanKind::kCheckpoint:
    case SpanKind::kValidation:
    case SpanKind::kGarbageCollection:
      return Share::kHostOther;
    case SpanKind::kOp:
    case SpanKind::kBackward:
    case SpanKind::kOptimizer:
    case SpanKind::kCollectiveCall:
    case SpanKind::kPython:
    case SpanKind::kAnnotation:
      return std::nullopt;
  }
  return std::nullopt;
}

// Places each piece in the first row of its track that is free: what runs inside another lies below it, and so does
// what overlaps it.
class Rows {
 public:
  std::optional<uint8_t> Place(int64_t begin_ns, int64_t end_ns) {
    for (uint8_t depth = 0; depth < kMaxDepth; ++depth) {
      if (depth == free_ns_.size()) free_ns_.push_back(begin_ns);
      if (free_ns_[depth] > begin_ns) continue;
      free_ns_[depth] = end_ns;
      return depth;
    }
    return std::nullopt;
  }

 private:
  std::vector<int64_t> free_ns_;
};

class Drawing {
 public:
  Drawing(const DeviceTrace& trace, const StepBounds& step) : trace_(trace) {
    line_.begin_ns = step.begin_ns;
    line_.end_ns = step.end_ns;
    line_.names.emplace_back();
  }

  void AddStreams() {
    std::map<uint16_t, std::pair<StepTimeline::Track, Rows>> streams;
    for (const DeviceOp& op : trace_.ops) {
      if (!Touches(op.begin_ns, op.end_ns)) continue;
      auto& [track, rows] = streams[op.stream];
      Add(op.begin_ns, op.end_ns, op.name, ShareOf(op.lane), &track, &rows);
    }
    for (auto& [stream, drawn] : streams) {
      drawn.first.name =
          "stream " + (stream < trace_.streams.size() ? trace_.streams[stream] : std::to_string(stream));
      drawn.first.on_device = true;
      line_.tracks.push_back(std::move(drawn.first));
    }
  }

  void AddThreads(const HostActivity& host) {
    struct Work {
      int64_t begin_ns, end_ns;
      NameId name;
      std::optional<Share> share;
    };
    std::map<uint16_t, std::vector<Work>> threads;
    for (const HostSpan& span : trace_.spans) {
      if (span.kind == SpanKind::kPython || !Touches(span.begin_ns, span.end_ns)) continue;
      threads[span.thread].push_back({span.begin_ns, span.end_ns, span.name, ShareOf(span.kind)});
    }
    for (size_t i = 0; i < trace_.calls.size(); ++i) {
      const HostCall& call = trace_.calls[i];
      if (!Touches(call.begin_ns, call.end_ns)) continue;
      const Share share = host.Blocks(static_cast<uint32_t>(i)) ? Share::kSync : Share::kLaunch;
      threads[call.thread].push_back({call.begin_ns, call.end_ns, call.name, share});
    }
    for (auto& [thread, works] : threads) {
      std::stable_sort(works.begin(), works.end(), [](const Work& a, const Work& b) {
        return a.begin_ns != b.begin_ns ? a.begin_ns < b.begin_ns : a.end_ns > b.end_ns;
      });
      StepTimeline::Track track;
      track.name = "thread " +
                   (thread < trace_.threads.size() ? trace_.threads[thread] : std::to_string(thread)) +
                   (thread == trace_.main_thread() ? " (main)" : "");
      Rows rows;
      for (const Work& work : works) Add(work.begin_ns, work.end_ns, work.name, work.share, &track, &rows);
      line_.tracks.push_back(std::move(track));
    }
  }

  StepTimeline Finish(size_t max_pieces) && {
    for (StepTimeline::Track& track : line_.tracks) {
      std::stable_sort(track.pieces.begin(), track.pieces.end(), [](const Piece& a, const Piece& b) {
        return a.depth != b.depth ? a.depth < b.depth : a.begin_ns < b.begin_ns;
      });
    }
    // From less than what a screen can show to where it hurts; a step is never too long for one more doubling.
    constexpr int64_t kInvisible = 1 << 16;
    for (int64_t ns = std::max<int64_t>(1, (line_.end_ns - line_.begin_ns) / kInvisible);
         Pieces() > max_pieces; ns *= 2) {
      for (StepTimeline::Track& track : line_.tracks) Join(ns, &track.pieces);
      if (ns > line_.end_ns - line_.begin_ns) break;  // as many tracks as pieces
    }
    return std::move(line_);
  }

 private:
  bool Touches(int64_t begin_ns, int64_t end_ns) const {
    return begin_ns < line_.end_ns && end_ns > line_.begin_ns;
  }

  void Add(int64_t begin_ns, int64_t end_ns, NameId name, std::optional<Share> share,
           StepTimeline::Track* track, Rows* rows) {
    const auto depth = rows->Place(begin_ns, end_ns);
    if (!depth) return;
    const auto [place, added] = names_.try_emplace(name, static_cast<uint32_t>(line_.names.size()));
    if (added) line_.names.emplace_back(trace_.names[name]);
    track->pieces.push_back({std::max(begin_ns, line_.begin_ns), std::min(end_ns, line_.end_ns),
                             place->second, 1, *depth, share});
  }

  size_t Pieces() const {
    size_t pieces = 0;
    for (const StepTimeline::Track& track : line_.tracks) pieces += track.pieces.size();
    return pieces;
  }

  // Neighbours of one kind become one where both they and the gap between them are shorter than `ns`.
  static void Join(int64_t ns, std::vector<Piece>* pieces) {
    size_t kept = 0;
    for (size_t i = 1; i < pieces->size(); ++i) {
      Piece& last = (*pieces)[kept];
      const Piece& next = (*pieces)[i];
      const bool alike = last.depth == next.depth && last.share == next.share;
      const bool tiny = next.end_ns - next.begin_ns < ns && next.begin_ns - last.end_ns < ns &&
                        (last.count > 1 || last.end_ns - last.begin_ns < ns);
      if (!alike || !tiny) {
        (*pieces)[++kept] = next;
        continue;
      }
      last.end_ns = next.end_ns;
      last.count += next.count;
      if (last.name != next.name) last.name = 0;
    }
    if (!pieces->empty()) pieces->resize(kept + 1);
  }

  const DeviceTrace& trace_;
  StepTimeline line_;
  std::unordered_map<NameId, uint32_t> names_;
};

}  // namespace

StepTimeline TimelineOf(const DeviceTrace& trace, const HostActivity& host, const StepBounds& step,
                        size_t max_pieces) {
  Drawing drawing(trace, step);
  drawing.AddStreams();
  drawing.AddThreads(host);
  return std::move(drawing).Finish(max_pieces);
}

}  // namespace fullbore::timeline
