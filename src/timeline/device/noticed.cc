#include "timeline/device/noticed.h"

#include <algorithm>
#include <map>

#include "timeline/device/order.h"
#include "timeline/device/phases.h"

namespace fullbore::timeline {
namespace {

using Stretch = record::Noticed::Stretch;

// What a launch usually takes where nearly all of them were slow: 3 to 12 us in the traces that the tests read.
constexpr int64_t kUsualLaunchNs = 10'000;
constexpr int64_t kTimesUsual = 100;
// More launches than a queue of the driver holds (CUDA: 1024) cannot all have been waiting when the recording ended.
constexpr size_t kLaunchQueue = 1024;
// As many as a report could ever look at; the longest are kept.
constexpr size_t kMaxStretches = 1000;

// One launch, with the calls inside it: the runtime's launch calls the driver's, and either may have the operation's
// correlation id.
struct Launch {
  int64_t begin_ns = 0;
  bool ran = false;
};

class LaunchList {
 public:
  explicit LaunchList(const DeviceTrace& trace) : nests_(trace.threads.size() + 1) {
    std::vector<bool> ran(trace.calls.size());
    for (const DeviceOp& op : trace.ops) {
      if (op.call != kNone) ran[op.call] = true;
    }
    for (size_t i = 0; i < trace.calls.size(); ++i) Take(trace.calls[i], ran[i]);
    for (Nest& nest : nests_) Close(&nest);
    std::sort(launches_.begin(), launches_.end(),
              [](const Launch& a, const Launch& b) { return a.begin_ns < b.begin_ns; });
  }

  const std::vector<Launch>& all() const { return launches_; }

 private:
  struct Nest {
    int64_t end_ns = INT64_MIN;
    bool launches = false;
    Launch launch;
  };

  void Take(const HostCall& call, bool ran) {
    Nest& nest = nests_[call.thread];
    if (call.begin_ns >= nest.end_ns) {
      Close(&nest);
      nest = {call.end_ns, false, {call.begin_ns, false}};
    }
    nest.launches = nest.launches || (RunsOperations(call.kind) && call.correlation != 0);
    nest.launch.ran = nest.launch.ran || ran;
  }
  void Close(Nest* nest) {
    if (nest->launches) launches_.push_back(nest->launch);
    nest->launches = false;
  }

  std::vector<Nest> nests_;  // by thread
  std::vector<Launch> launches_;
};

// When the device did nothing, until the last operation and for ever after.
class IdleTimes {
 public:
  explicit IdleTimes(const DeviceTrace& trace) {
    int64_t busy_until = INT64_MIN;
    for (const DeviceOp& op : trace.ops) {
      if (op.begin_ns > busy_until) spans_.push_back({busy_until, op.begin_ns});
      busy_until = std::max(busy_until, op.end_ns);
    }
    spans_.push_back({busy_until, INT64_MAX});
  }

  // Calls take(begin, end) for what is idle in [begin_ns, end_ns).
  template <typename Take>
  void Within(int64_t begin_ns, int64_t end_ns, Take take) const {
    auto it = std::partition_point(spans_.begin(), spans_.end(),
                                   [&](const Span& span) { return span.end_ns <= begin_ns; });
    for (; it != spans_.end() && it->begin_ns < end_ns; ++it) {
      const int64_t begin = std::max(begin_ns, it->begin_ns), end = std::min(end_ns, it->end_ns);
      if (begin < end) take(begin, end);
    }
  }

 private:
  struct Span {
    int64_t begin_ns, end_ns;
  };
  std::vector<Span> spans_;
};

// Launches that ran nothing, and the idle time in which the device may have worked for them all the same.
class BareLaunches {
 public:
  BareLaunches(const DeviceTrace& trace, const std::vector<Launch>& launches)
      : trace_(trace), launches_(launches), by_launch_(OrderOfLaunches(trace)) {
    for (const HostCall& call : trace.calls) {
      if (call.kind == CallKind::kSync) syncs_.push_back({call.begin_ns, call.end_ns});
    }
    counted_ = launches.size() - StillQueued();
  }

  void Count(record::Noticed* noticed) const {
    noticed->launches = static_cast<int64_t>(counted_);
    for (size_t i = 0; i < counted_; ++i) noticed->ran_nothing += launches_[i].ran ? 0 : 1;
  }

  std::vector<Stretch> Stretches(const IdleTimes& idle) const {
    std::vector<Stretch> stretches;
    int64_t looked_until = INT64_MIN;
    for (size_t i = 0; i < counted_; ++i) {
      if (launches_[i].ran) continue;
      const int64_t begin_ns = launches_[i].begin_ns, done_ns = DoneBy(begin_ns);
      if (!stretches.empty() && begin_ns <= stretches.back().end_ns) {
        ++stretches.back().launches;
        ++stretches.back().ran_nothing;
      }
      idle.Within(std::max(begin_ns, looked_until), done_ns, [&](int64_t begin, int64_t end) {
        if (!stretches.empty() && stretches.back().end_ns == begin)
          stretches.back().end_ns = end;
        else
          stretches.push_back({begin, end, 1, 1});
      });
      looked_until = std::max(looked_until, done_ns);
    }
    KeepLongest(&stretches);
    return stretches;
  }

 private:
  struct Sync {
    int64_t begin_ns, end_ns;
  };

  // The last launches may run after the recording ends: unless the host waited for them, or they are too many.
  size_t StillQueued() const {
    size_t queued = 0;
    const int64_t waited_ns = syncs_.empty() ? INT64_MIN : syncs_.back().begin_ns;
    while (queued < launches_.size()) {
      const Launch& launch = launches_[launches_.size() - 1 - queued];
      if (launch.ran || launch.begin_ns < waited_ns) break;
      ++queued;
    }
    return queued <= kLaunchQueue ? queued : 0;
  }

  // When what was launched at `t` has ended: what was launched next has begun, or the host has waited for it.
  int64_t DoneBy(int64_t t) const {
    const auto next = std::partition_point(by_launch_.begin(), by_launch_.end(),
                                           [&](uint32_t i) { return trace_.ops[i].launch_begin_ns <= t; });
    int64_t done_ns = next == by_launch_.end() ? t : trace_.ops[*next].begin_ns;
    const auto sync = std::partition_point(syncs_.begin(), syncs_.end(),
                                           [&](const Sync& call) { return call.begin_ns <= t; });
    if (sync == syncs_.end()) return done_ns;
    return next == by_launch_.end() ? sync->end_ns : std::min(done_ns, sync->end_ns);
  }

  static void KeepLongest(std::vector<Stretch>* stretches) {
    if (stretches->size() <= kMaxStretches) return;
    std::nth_element(
        stretches->begin(), stretches->begin() + kMaxStretches, stretches->end(),
        [](const Stretch& a, const Stretch& b) { return a.end_ns - a.begin_ns > b.end_ns - b.begin_ns; });
    stretches->resize(kMaxStretches);
    std::sort(stretches->begin(), stretches->end(),
              [](const Stretch& a, const Stretch& b) { return a.begin_ns < b.begin_ns; });
  }

  const DeviceTrace& trace_;
  const std::vector<Launch>& launches_;
  const std::vector<uint32_t> by_launch_;
  std::vector<Sync> syncs_;  // by begin
  size_t counted_ = 0;
};

void NoticeLaunches(DeviceTrace* trace, const IdleTimes& idle) {
  const LaunchList launches(*trace);
  const BareLaunches bare(*trace, launches.all());
  record::Noticed& noticed = trace->noticed;
  bare.Count(&noticed);
  if (!trace->has_device_activity()) return;  // there is no device whose time could be divided
  const auto without_id = std::count_if(trace->ops.begin(), trace->ops.end(),
                                        [](const DeviceOp& op) { return op.correlation == 0; });
  if (without_id >= noticed.ran_nothing) {  // they may be what those launches ran
    noticed.ran_nothing = 0;
    return;
  }
  noticed.bare = bare.Stretches(idle);
}

// What the driver does only once: it loads code, and makes a context.
bool IsColdByName(std::string_view name) {
  for (const std::string_view part : {"ModuleLoad", "LibraryLoad", "ModuleGetFunction", "LibraryGetKernel",
                                      "CtxCreate", "PrimaryCtxRetain", "cuInit", "hipInit"}) {
    if (name.find(part) != std::string_view::npos) return true;
  }
  return false;
}

std::map<NameId, int64_t> UsualDurations(const DeviceTrace& trace) {
  std::map<NameId, std::vector<int64_t>> durations;
  std::map<NameId, int64_t> usual;
  for (const HostCall& call : trace.calls) {
    if (!RunsOperations(call.kind) && call.kind != CallKind::kMemset) continue;
    durations[call.name].push_back(call.end_ns - call.begin_ns);
    if (call.kind != CallKind::kGraphLaunch) usual[call.name] = kUsualLaunchNs;
  }
  for (auto& [name, of_name] : durations) {
    const auto middle = of_name.begin() + static_cast<std::ptrdiff_t>(of_name.size() / 2);
    std::nth_element(of_name.begin(), middle, of_name.end());
    const auto [place, added] = usual.try_emplace(name, *middle);
    if (!added) place->second = std::min(place->second, *middle);
  }
  return usual;
}

// Until when the device does what was launched before the recording began; of operations none of which is tied to a
// launch, nothing is known.
int64_t EndOfEarlierLaunches(const DeviceTrace& trace) {
  int64_t end_ns = INT64_MIN;
  for (const DeviceOp& op : trace.ops) {
    if (op.call != kNone) return end_ns;
    end_ns = std::max(end_ns, op.end_ns);
  }
  return INT64_MIN;
}

// A launch may also wait for room in a full queue: then the device works meanwhile, or what it does was launched, and
// perhaps begun, before the recording.
void NoticeColdCalls(DeviceTrace* trace, const IdleTimes& idle) {
  const std::map<NameId, int64_t> usual = UsualDurations(*trace);
  const int64_t full_until_ns = EndOfEarlierLaunches(*trace);
  std::vector<int64_t> counted_until(trace->threads.size() + 1, INT64_MIN);
  for (const HostCall& call : trace->calls) {
    const int64_t ns = call.end_ns - call.begin_ns;
    if (ns < kUsualLaunchNs || call.begin_ns < counted_until[call.thread]) continue;
    const auto found = usual.find(call.name);
    const bool slow = found != usual.end() && call.begin_ns >= full_until_ns &&
                      ns >= kTimesUsual * std::max<int64_t>(1000, found->second);
    if (!slow && !(call.kind == CallKind::kOther && IsColdByName(trace->names[call.name]))) continue;
    int64_t idle_ns = 0;
    idle.Within(call.begin_ns, call.end_ns, [&](int64_t begin, int64_t end) { idle_ns += end - begin; });
    if (2 * idle_ns < ns) continue;
    counted_until[call.thread] = call.end_ns;
    ++trace->noticed.cold_calls;
    trace->noticed.cold_ns += ns;
  }
}

void NoticeRecomputation(DeviceTrace* trace) {
  const Phases phases(*trace);
  record::Noticed& noticed = trace->noticed;
  for (const DeviceOp& op : trace->ops) {
    if (op.call == kNone || (Bit(op.lane) & kComputeLanes) == 0) continue;
    const int64_t ns = op.end_ns - op.begin_ns;
    noticed.computed_ns += ns;
    if (phases.At(op.launch_thread, op.launch_begin_ns) == record::Phase::kRecomputation)
      noticed.recomputed_ns += ns;
  }
}

}  // namespace

bool BeginsCapture(std::string_view call) {
  return call.find("StreamBeginCapture") != std::string_view::npos;
}

void Notice(DeviceTrace* trace) {
  record::Noticed& noticed = trace->noticed;
  noticed.left_out = 0;
  for (const auto& [what, count] : trace->left_out) {
    if (what.find("(kept") == std::string::npos) noticed.left_out += count;
  }
  const IdleTimes idle(*trace);
  NoticeLaunches(trace, idle);
  NoticeColdCalls(trace, idle);
  if (!trace->has_device_activity()) return;
  if (!trace->recomputations.empty()) NoticeRecomputation(trace);
  int64_t end_ns = INT64_MIN;
  std::vector<bool> worked(trace->streams.size() + 1);
  for (const DeviceOp& op : trace->ops) {
    end_ns = std::max(end_ns, op.end_ns);
    worked[op.stream] = true;
  }
  noticed.span_ns = end_ns - trace->ops[0].begin_ns;
  const std::vector<uint16_t> device_of = DevicesOfStreams(*trace);
  std::vector<bool> devices(device_of.size());
  for (size_t stream = 0; stream < worked.size(); ++stream) {
    if (worked[stream]) devices[device_of[stream]] = true;
  }
  noticed.devices = std::count(devices.begin(), devices.end(), true);
}

}  // namespace fullbore::timeline
