#include "timeline/host_steps.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "record/limits.h"

namespace fullbore::timeline {

using record::ChannelRecord;
using record::EventKind;
using record::HostOther;
using record::Share;

namespace {

// With fewer samples before forward passes, none of that time is called a wait for data.
constexpr int64_t kMinSamples = 10;
// The first steps wait for them, but no more than these, and no longer.
constexpr size_t kMaxHeld = 64;
constexpr int64_t kMaxHeldNs = 10 * kNsPerSecond;
// The ratio follows a run that changes: once this many samples are counted, older ones count half.
constexpr int64_t kManySamples = 512;
// Of one in twenty, and of fewer than three, the sampler may as well have met a stray call.
constexpr double kMinFeeding = 0.05;
constexpr int64_t kMinSeen = 3;
// A loader that gives a batch to so many steps in a row feeds them, though another is asked after it.
constexpr int kStepsInARow = 4;

// Before that many steps no median says which one is slow.
constexpr uint64_t kStepsForMedian = 10;
// What `d` says of a sample that saw the thread wait for what another process makes.
constexpr int64_t kFromProcess = 3;
// What `b` says of a backward pass.
constexpr int64_t kExchanged = 1;

// What `a` says of a compiled function's call (record/channel.h).
constexpr int64_t kCompiledStep = 2, kCompiledOther = 3;

EventKind KindOf(const ChannelRecord& event) { return static_cast<EventKind>(event.kind); }

// Whether what a sample saw there may be computation: it is none of what the samples tell apart.
bool MayCompute(const ChannelRecord& hit) {
  const record::Activity activity = record::ActivityNumbered(hit.c);
  return activity == record::Activity::kUnknown || activity == record::Activity::kPython;
}

// Whether a forward pass of the training was seen; without an optimizer, any.
bool CallsModule(const std::vector<ChannelRecord>& events, const std::vector<PassFor>& passes, bool stepped) {
  for (size_t i = 0; i < events.size(); ++i) {
    if (KindOf(events[i]) == EventKind::kForward && (!stepped || passes[i] == PassFor::kTraining))
      return true;
  }
  return false;
}

// The end of a step as the script itself says it.
bool IsMarked(const ChannelRecord& event) {
  return KindOf(event) == EventKind::kOptimizer && event.a == 1 && event.b == 1;
}

HostOther PartNumbered(uint16_t other) {
  switch (static_cast<record::OtherKind>(other)) {
    case record::OtherKind::kCheckpoint:
      return HostOther::kCheckpoint;
    case record::OtherKind::kCompilation:
      return HostOther::kCompilation;
    default:
      return HostOther::kGarbageCollection;
  }
}

// Not marks without duration; nor fetches, which lie inside the `next` that waits for them.
bool TakesTime(const ChannelRecord& event) {
  switch (KindOf(event)) {
    case EventKind::kFetch:
    case EventKind::kLine:
    case EventKind::kDeviceTime:
    case EventKind::kMemory:
      return false;
    default:
      return event.end_ns > event.begin_ns;
  }
}

}  // namespace

void HostSteps::OnEvent(const ChannelRecord& event) {
  missing_.OnEvent(event.sequence);
  if (KindOf(event) == EventKind::kCores) {
    cores_ = event;
    return;
  }
  const bool ends_step = KindOf(event) == EventKind::kOptimizer && event.a == 1;
  if (!stepped_) {
    if (BeginsBatch(event)) CloseBatch(event.thread, event.begin_ns);
    if (of_batch_.size() < kMaxPendingEvents) of_batch_.push_back(event);
  }
  // The event that ends a step is kept even if other threads have filled the list: a
  // step has at least that event.
  if (ends_step || pending_.size() < kMaxPendingEvents)
    pending_.push_back(event);
  else
    ++dropped_;
  if (ends_step) CloseStep(event);
}

bool HostSteps::BeginsBatch(const ChannelRecord& event) {
  const EventKind kind = KindOf(event);
  const bool takes = kind == EventKind::kNext && event.a != 0;
  const bool passes = kind == EventKind::kForward || kind == EventKind::kBackward;
  // The first batch. A pass before the first loader is asked is not part of it: a model that was only tried out.
  if ((passes && passes_.begin_ns == 0) || (takes && !std::exchange(passes_.fed, true) && batches_.empty()))
    passes_ = {false, false, passes_.fed, event.begin_ns, 0};
  const bool after_backward =
      passes_.backward && (kind == EventKind::kForward || (kind == EventKind::kBackward && only_backward_));
  const bool begins = passes_.any && (takes || after_backward);
  only_backward_ &= kind != EventKind::kForward && kind != EventKind::kNext;
  if (begins) passes_ = {false, false, passes_.fed, passes_.begin_ns, 0};
  passes_.any |= passes;
  passes_.backward |= kind == EventKind::kBackward;
  // The end of its epoch is the end of the last batch: what a program does afterwards is no part of it.
  if (passes || (kind == EventKind::kNext && event.a == 0 && passes_.any)) {
    passes_.end_ns = passes ? event.end_ns : event.begin_ns;
    passes_.thread = event.thread;
  }
  return begins;
}

// The batch ends where the next one begins, on this thread.
void HostSteps::CloseBatch(uint16_t thread, int64_t end_ns) {
  std::vector<ChannelRecord> events;
  const int64_t begin_ns = std::exchange(passes_.begin_ns, end_ns);
  std::erase_if(of_batch_, [&](const ChannelRecord& event) {
    const bool before = event.begin_ns < end_ns;
    if (before && event.begin_ns >= begin_ns) events.push_back(event);
    return before;
  });
  if (begin_ns >= end_ns || missing_.InStep(begin_ns, end_ns)) return;
  for (const ChannelRecord& event : events) {
    if (KindOf(event) == EventKind::kNext && event.a != 0) fed_by_.insert(event.id);
  }
  batches_.push_back(WithFeeding(StepOf(std::move(events), thread, begin_ns, end_ns)));
  if (batches_.size() > kMaxBatches) batches_.pop_front();
}

bool HostSteps::TakeBatchesForSteps() {
  if (stepped_ || batches_.empty()) return false;
  if (passes_.any) CloseBatch(passes_.thread, passes_.end_ns);
  training_loaders_ = fed_by_;
  for (record::Step& batch : batches_) {
    batch.index = next_index_++;
    done_.push_back(batch);
  }
  batches_.clear();
  return true;
}

std::vector<record::Step> HostSteps::TakeSteps(bool last) {
  if (last) Release();
  return std::exchange(done_, {});
}

std::map<LineHit, int64_t> HostSteps::TakeLineHits() { return std::exchange(line_hits_, {}); }

double HostSteps::Feeding::ratio() const {
  if (all < kMinSamples || seen < kMinSeen) return 0;
  const double ratio = static_cast<double>(seen) / static_cast<double>(all);
  return ratio < kMinFeeding ? 0 : ratio;
}

// The loader that feeds a training pass is the one whose batch was taken last before it, unless that was the
// end of its epoch: a validation's loader, after which the training goes on without one.
void HostSteps::LearnTrainingLoaders(const std::vector<ChannelRecord>& events) {
  std::optional<uint16_t> last;
  for (const ChannelRecord& event : events) {  // by begin
    if (KindOf(event) == EventKind::kNext && event.c == 1) last = event.id;
    if (KindOf(event) == EventKind::kNext && event.c != 1) {
      last = event.a == 0 ? std::nullopt : std::optional<uint16_t>(event.id);
    }
    if ((IsTraining(event) || IsMarked(event)) && last) training_loaders_.insert(*last);
  }
  LearnLoadersOfEachStep(events);
}

// Steps may take batches of several loaders: labelled and unlabelled ones, two domains. One that is begun anew within
// the step is a validation's that each step makes.
void HostSteps::LearnLoadersOfEachStep(const std::vector<ChannelRecord>& events) {
  std::set<uint16_t> gave;
  for (const ChannelRecord& event : events) {
    if (KindOf(event) == EventKind::kNext && event.a != 0 && !IsTrainingLoader(event.id))
      gave.insert(event.id);
  }
  for (const ChannelRecord& event : events) {
    if (KindOf(event) == EventKind::kNext && event.c == 1) gave.erase(event.id);
  }
  std::erase_if(in_a_row_, [&](const auto& row) { return !gave.contains(row.first); });
  for (const uint16_t loader : gave) {
    if (++in_a_row_[loader] >= kStepsInARow) training_loaders_.insert(loader);
  }
}

// Between two marks of the script's own, without a model of torch's, the loop computes: nobody knows what.
void HostSteps::NameMarked(std::vector<Segment>& segments) {
  const bool seen = std::ranges::any_of(segments, [](const Segment& segment) {
    return segment.share == Share::kForward || segment.share == Share::kBackward;
  });
  if (seen) return;
  for (Segment& segment : segments) {
    if (!segment.covered) segment.share = Share::kCompute;
  }
}

HostSteps::Segment HostSteps::Classify(const ChannelRecord& event, PassFor pass, int64_t at_ns) const {
  const auto as = [](Share share, HostOther part = HostOther::kUnnamed) {
    return Segment{0, 0, true, share, part};
  };
  const HostOther besides = pass == PassFor::kValidation ? HostOther::kValidation
                            : pass == PassFor::kUnknown  ? HostOther::kWithoutGradients
                                                         : HostOther::kUnnamed;
  switch (KindOf(event)) {
    case EventKind::kNext:
      return Feeds(event.id) ? as(Share::kDataWait) : as(Share::kHostOther, besides);
    case EventKind::kForward:
      if (event.a == kCompiledStep || event.a == kCompiledOther) return as(Share::kCompute);
      if (!stepped_ || pass == PassFor::kTraining || pass == PassFor::kFrozen) return as(Share::kForward);
      return as(Share::kHostOther, besides);
    case EventKind::kBackward:
      // After this rank's last gradient, all that is left is waiting for the others'.
      return as(event.a > 0 && at_ns >= event.a ? Share::kCommExposed : Share::kBackward);
    case EventKind::kOptimizer:
      return as(Share::kOptimizer);
    case EventKind::kH2d:
      return as(Share::kH2d);
    case EventKind::kCollective:
      return as(Share::kCommExposed);
    case EventKind::kSync:
      return as(Share::kSync);
    case EventKind::kOther:
      return as(Share::kHostOther, PartNumbered(event.id));
    default:
      return as(Share::kHostOther);
  }
}

// Cuts [begin, end) at every boundary of an event; each piece goes to the innermost event that covers it,
// which is the one that began last. `events` are sorted by begin, the outer before the inner.
std::vector<HostSteps::Segment> HostSteps::Divide(const std::vector<ChannelRecord>& events,
                                                  const std::vector<PassFor>& passes, int64_t begin_ns,
                                                  int64_t end_ns) const {
  std::vector<Segment> segments;
  std::vector<const ChannelRecord*> open;
  int64_t at = begin_ns;
  const auto advance = [&](int64_t to) {
    to = std::min(to, end_ns);
    while (at < to) {
      while (!open.empty() && open.back()->end_ns <= at) open.pop_back();
      int64_t until = to;
      if (open.empty()) {
        segments.push_back({at, until, false, Share::kHostOther, HostOther::kUnnamed});
      } else {
        const ChannelRecord& event = *open.back();
        until = std::min(until, event.end_ns);
        const bool splits = KindOf(event) == EventKind::kBackward && event.a > at && event.a < until;
        if (splits) until = event.a;
        Segment segment = Classify(event, passes[static_cast<size_t>(&event - events.data())], at);
        segment.begin_ns = at;
        segment.end_ns = until;
        segments.push_back(segment);
      }
      at = until;
    }
  };
  for (const ChannelRecord& event : events) {
    if (!TakesTime(event)) continue;
    advance(event.begin_ns);
    while (!open.empty() && open.back()->end_ns <= at) open.pop_back();
    open.push_back(&event);
  }
  advance(end_ns);
  for (size_t i = 1; i + 1 < segments.size(); ++i) {
    if (segments[i].covered) continue;
    const Segment &before = segments[i - 1], &after = segments[i + 1];
    if (before.share == Share::kForward && after.share == Share::kBackward)
      segments[i].share = Share::kForward;
    if (before.part == HostOther::kValidation && after.part == HostOther::kValidation) {
      segments[i].part = HostOther::kValidation;
    }
  }
  return segments;
}

void HostSteps::MarkTimeBeforeForward(const std::vector<ChannelRecord>& events, bool calls_no_module,
                                      std::vector<Segment>& segments) const {
  const bool has_backward = std::ranges::any_of(
      events, [](const ChannelRecord& event) { return KindOf(event) == EventKind::kBackward; });
  auto next = events.begin();
  for (Segment& segment : segments) {
    if (segment.covered || segment.share != Share::kHostOther || segment.part != HostOther::kUnnamed)
      continue;
    const auto trains = [&](const ChannelRecord& event) {
      const bool steps = KindOf(event) == EventKind::kOptimizer && event.a == 1;
      return event.begin_ns >= segment.end_ns && (steps || IsTraining(event));
    };
    next = std::find_if(next, events.end(), trains);
    if (calls_no_module) {
      // Without an optimizer a step begins with its backward pass: what follows it leads to the next one.
      const EventKind leads_to = has_backward ? EventKind::kBackward : EventKind::kOptimizer;
      segment.computes = next != events.end() ? KindOf(*next) == leads_to : !stepped_ && has_backward;
    }
    segment.before_forward =
        segment.computes || (next != events.end() && KindOf(*next) == EventKind::kForward);
  }
}

// A sample is counted where its time goes: if it saw the training being fed, that is data_wait.
void HostSteps::CountLineHit(const ChannelRecord& hit, const std::vector<Segment>& segments, bool slow) {
  const auto inside = std::find_if(segments.begin(), segments.end(), [&](const Segment& s) {
    return s.begin_ns <= hit.begin_ns && hit.begin_ns < s.end_ns;
  });
  if (inside == segments.end()) return;
  LineHit key = {inside->share, inside->part, hit.a, record::ActivityNumbered(hit.c), hit.d == 1, slow};
  if (inside->before_forward) {
    const bool feeds = hit.d == kFromProcess || (hit.d > 0 && training_loaders_.empty());
    if (feeding_.all >= kManySamples) feeding_ = {feeding_.all / 2, feeding_.seen / 2};
    ++feeding_.all;
    feeding_.seen += feeds;
    if (feeds) key.share = Share::kDataWait;
  }
  if (inside->computes && key.share != Share::kDataWait) {
    if (computing_.all >= kManySamples) computing_ = {computing_.all / 2, computing_.seen / 2};
    ++computing_.all;
    computing_.seen += MayCompute(hit);
    if (MayCompute(hit)) key.share = Share::kCompute;
  }
  ++line_hits_[key];
}

bool HostSteps::IsSlow(int64_t wall_ns) {
  const bool known = wall_ns_.count() >= kStepsForMedian;
  const bool slow = known && static_cast<double>(wall_ns) >= record::kSlowStep * wall_ns_.Quantile(0.5);
  wall_ns_.Add(static_cast<double>(wall_ns));
  return slow;
}

// Gradients that are exchanged and then added to, without an optimizer that steps or clears them in between, could have
// been exchanged with those that are added.
void HostSteps::CountExchanges(const std::vector<ChannelRecord>& events) {
  bool exchanged = false;  // and nobody has used the gradients yet
  bool any = false;
  for (const ChannelRecord& event : events) {
    if (KindOf(event) == EventKind::kOptimizer) exchanged = false;
    if (KindOf(event) == EventKind::kCollective) {
      exchanges_.collectives_ns += event.end_ns - event.begin_ns;
      if (event.b == 1) exchanges_.reducing_ns += event.end_ns - event.begin_ns;
    }
    if (KindOf(event) != EventKind::kBackward || event.b == 0) continue;
    any = true;
    ++exchanges_.passes;
    if (event.b != kExchanged) continue;
    ++exchanges_.exchanging;
    exchanges_.early += std::exchange(exchanged, true);
  }
  exchanges_.steps += any;
}

void HostSteps::CloseStep(const ChannelRecord& boundary) {
  if (!std::exchange(stepped_, true)) {
    batches_ = {};
    of_batch_ = {};
    fed_by_.clear();
    pass_kinds_ = {};
    wall_ns_ = {};
    exchanges_ = {};
    steps_divided_ = steps_without_module_ = 0;
  }
  std::vector<ChannelRecord> events = std::exchange(pending_, {});
  int64_t begin_ns = last_end_ns_;
  if (begin_ns == 0) {  // the first step begins with its thread's first event
    begin_ns = boundary.begin_ns;
    for (const ChannelRecord& event : events) {
      if (event.thread == boundary.thread) begin_ns = std::min(begin_ns, event.begin_ns);
    }
  }
  last_end_ns_ = boundary.end_ns;
  if (missing_.InStep(begin_ns, boundary.end_ns)) return;
  if (boundary.c == 1) {
    ++next_index_;
    return;
  }
  held_.push_back(StepOf(std::move(events), boundary.thread, begin_ns, boundary.end_ns));
  held_.back().step.index = next_index_++;
  CountCores(boundary, held_.back().step);
  if (released_ || KnowsWhatFeeds() || held_.size() >= kMaxHeld ||
      boundary.end_ns - held_.front().step.end_ns >= kMaxHeldNs)
    Release();
}

void HostSteps::CountCores(const ChannelRecord& boundary, record::Step& step) {
  if (cores_.end_ns != boundary.end_ns || cores_.thread != boundary.thread) return;
  const ChannelRecord before = std::exchange(cores_before_, cores_);
  if (before.end_ns != boundary.end_ns - step.wall_ns || before.thread != cores_.thread) return;
  step.without_core_ns = cores_.a - before.a;
  step.cpu_ns = cores_.b - before.b;
  step.on_core_ns = cores_.c - before.c;
}

bool HostSteps::KnowsWhatFeeds() const {
  const bool may_be_stray = feeding_.seen > 0 && feeding_.seen < kMinSeen;
  return !training_loaders_.empty() || (feeding_.all >= kMinSamples && !may_be_stray);
}

void HostSteps::Release() {
  for (const HeldStep& held : held_) done_.push_back(WithFeeding(held));
  released_ = released_ || !held_.empty();
  held_.clear();
}

record::Step HostSteps::WithFeeding(const HeldStep& held) const {
  record::Step step = held.step;
  const auto counts_as = [&](Share share, double ns) {
    const int64_t whole_ns = std::llround(ns);
    step.share_ns[Index(share)] += whole_ns;
    step.share_ns[Index(Share::kHostOther)] -= whole_ns;
    step.host_other_ns[static_cast<size_t>(HostOther::kUnnamed)] -= whole_ns;
  };
  const double fed = feeding_.ratio();
  if (fed > 0) counts_as(Share::kDataWait, fed * static_cast<double>(held.before_forward_ns));
  if (held.computes_ns > 0) {
    const double computing = computing_.all < kMinSamples ? 1 : computing_.ratio();
    counts_as(Share::kCompute, std::floor(computing * (1 - fed) * static_cast<double>(held.computes_ns)));
  }
  return step;
}

HostSteps::HeldStep HostSteps::StepOf(std::vector<ChannelRecord> events, uint16_t thread, int64_t begin_ns,
                                      int64_t end_ns) {
  // A hit of the line sampler is written by the sampler's thread and says where the training thread is.
  std::erase_if(events,
                [&](const ChannelRecord& e) { return e.thread != thread && KindOf(e) != EventKind::kLine; });
  std::stable_sort(events.begin(), events.end(), [](const ChannelRecord& a, const ChannelRecord& b) {
    return a.begin_ns != b.begin_ns ? a.begin_ns < b.begin_ns : a.end_ns > b.end_ns;
  });
  const bool had_loader = !training_loaders_.empty();
  if (stepped_) LearnTrainingLoaders(events);
  if (!had_loader && !training_loaders_.empty()) feeding_ = {};  // what else seemed to feed it did not

  HeldStep held;
  record::Step& step = held.step;
  step.end_ns = end_ns;
  step.wall_ns = std::max<int64_t>(0, end_ns - begin_ns);
  const std::vector<PassFor> passes = pass_kinds_.Of(events, training_loaders_);
  const bool calls_no_module = !CallsModule(events, passes, stepped_);
  ++steps_divided_;
  steps_without_module_ += calls_no_module;
  const bool slow = IsSlow(step.wall_ns);
  CountExchanges(events);
  std::vector<Segment> segments = Divide(events, passes, begin_ns, step.end_ns);
  if (std::ranges::any_of(events, IsMarked)) NameMarked(segments);
  MarkTimeBeforeForward(events, calls_no_module, segments);
  for (const ChannelRecord& event : events) {
    if (KindOf(event) == EventKind::kLine) CountLineHit(event, segments, slow);
  }
  for (const Segment& segment : segments) {
    const int64_t ns = segment.end_ns - segment.begin_ns;
    if (segment.before_forward) held.before_forward_ns += ns;
    if (segment.computes) held.computes_ns += ns;
    step.share_ns[Index(segment.share)] += ns;
    if (segment.share == Share::kHostOther) step.host_other_ns[static_cast<size_t>(segment.part)] += ns;
  }
  for (const ChannelRecord& event : events) {
    if (KindOf(event) == EventKind::kNext && Feeds(event.id) && event.a != 0) {
      ++step.batches;
      step.elements += std::clamp<int64_t>(event.d, 0, record::kMaxCount);
      if (event.a > 0)
        step.samples += event.a;
      else
        samples_known_ = false;
      if (event.b >= 0) {
        const auto ready = static_cast<int32_t>(event.b);
        step.ready_batches = step.ready_batches < 0 ? ready : std::min(step.ready_batches, ready);
      }
    } else if (KindOf(event) == EventKind::kForward && event.a == kCompiledStep &&
               training_loaders_.empty()) {
      step.samples += std::max<int64_t>(0, event.b);
    } else if (KindOf(event) == EventKind::kDeviceTime) {
      step.device_ns = std::max<int64_t>(step.device_ns, 0) + event.a;
    }
  }
  return held;
}

}  // namespace fullbore::timeline
